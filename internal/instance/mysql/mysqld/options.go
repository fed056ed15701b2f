package mysqld

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/storeplane/storeplane/internal/instance"
)

// Options are the options of a server that its group relies on. They are arguments of the program,
// which no file of options can override. Variables that were persisted would: they are not loaded.
type Options struct {
	// File is a file of other options, or "".
	File string

	// ID is the number of the server in its group, from 1 on. Host is the name by which the other
	// servers reach it.
	ID   int
	Host string
	Port int

	// RunDir is the folder of the socket.
	RunDir string

	// Certificate, Key and Authority are the files of the certificate that the server shows, and
	// of the authority by which it verifies the certificates of the other servers as its clients.
	Certificate, Key, Authority string

	// PeerCertificate and PeerKey are the files of the certificate by which the server connects to
	// the others, and PeerAuthority is the authority of the certificates that they show. VerifyHost
	// is true if these contain the servers' names.
	PeerCertificate, PeerKey, PeerAuthority string
	VerifyHost                              bool

	// TLSRequired is true if clients that connect over the network must use TLS.
	TLSRequired bool
}

// Socket returns the path of the server's socket.
func (o Options) Socket() string { return filepath.Join(o.RunDir, instance.MySQLSocket) }

// base returns the arguments with which every start of the program begins.
func (o Options) base(dataDir string) []string {
	first := "--no-defaults"
	if o.File != "" {
		first = "--defaults-file=" + o.File
	}
	return []string{first, "--datadir=" + dataDir, "--persisted-globals-load=OFF", "--secure-file-priv=NULL", "--lower-case-table-names=0"}
}

// trusted is the file with the authorities that the server is started with.
func (o Options) trusted() string { return filepath.Join(o.RunDir, "authorities.crt") }

// Trust writes the authorities that the server knows: that by which it verifies other servers, and those
// of its own certificate, without which it takes no other certificate while it runs. Servers are known by
// the names in their certificates, too.
func (o Options) Trust() error {
	var all []byte
	for _, name := range []string{o.Authority, o.PeerAuthority} {
		data, err := os.ReadFile(name) //nolint:gosec // a flag of the pod
		if err != nil {
			return fmt.Errorf("cannot read an authority: %w", err)
		}
		all = append(append(all, data...), '\n')
	}
	if err := os.WriteFile(o.trusted(), all, 0o600); err != nil { //nolint:gosec // a file of the pod
		return fmt.Errorf("cannot write the authorities: %w", err)
	}
	return nil
}

func (o Options) pidFile() string { return filepath.Join(o.RunDir, "mysqld.pid") }

// serve returns the arguments of a server that can join a group. Errors go to the standard error.
func (o Options) serve(dataDir, temporary string) []string {
	ssl := "VERIFY_CA"
	if o.VerifyHost {
		ssl = "VERIFY_IDENTITY"
	}
	args := append(o.base(dataDir),
		"--server-id="+strconv.Itoa(o.ID),
		"--port="+strconv.Itoa(o.Port),
		"--socket="+o.Socket(),
		"--pid-file="+o.pidFile(),
		"--tmpdir="+temporary,
		"--mysqlx=OFF",
		"--skip-name-resolve=ON",
		"--report-host="+o.Host,
		"--report-port="+strconv.Itoa(o.Port),
		"--ssl-ca="+o.trusted(), "--ssl-cert="+o.Certificate, "--ssl-key="+o.Key,
		"--require-secure-transport="+onOff(o.TLSRequired),
	)
	for _, fixed := range groupOptions {
		args = append(args, "--"+fixed)
	}
	return append(args,
		"--loose-group-replication-ssl-mode="+ssl,
		"--loose-group-replication-recovery-ssl-verify-server-cert="+onOff(o.VerifyHost),
		"--loose-group-replication-recovery-ssl-ca="+o.PeerAuthority,
		"--loose-group-replication-recovery-ssl-cert="+o.PeerCertificate,
		"--loose-group-replication-recovery-ssl-key="+o.PeerKey,
	)
}

// groupOptions are the options that are the same for all servers. A primary that fails is expelled
// as soon as it is suspected: a longer wait would cost 15 s at each failover. A server that sees no
// majority for 10 s refuses writes instead of blocking them.
var groupOptions = []string{
	"gtid-mode=ON", "enforce-gtid-consistency=ON",
	// The default names contain the host's name.
	"log-bin=binlog", "relay-log=relay",
	"sync-binlog=1", "innodb-flush-log-at-trx-commit=1", "innodb-doublewrite=ON", "binlog-error-action=ABORT_SERVER",
	"binlog-row-image=FULL", "log-replica-updates=ON", "replica-preserve-commit-order=ON",
	// What a server has received and not applied is known again after its start: it counts when the
	// newest server is looked for.
	"relay-log-recovery=OFF",
	"local-infile=OFF", "offline-mode=OFF", "init-connect=",
	// Users without administrative rights can create functions and triggers, of which the binary
	// log has the rows, and tables without a primary key, which a group refuses.
	"loose-log-bin-trust-function-creators=ON", "sql-generate-invisible-primary-key=ON",
	// A server is writable only as the primary of its group.
	"super-read-only=ON",
	"disabled-storage-engines=MyISAM,BLACKHOLE,FEDERATED,ARCHIVE,MEMORY",
	"plugin-load-add=group_replication.so", "plugin-load-add=mysql_clone.so",
	"loose-group-replication-start-on-boot=OFF",
	"loose-group-replication-bootstrap-group=OFF",
	"loose-group-replication-single-primary-mode=ON",
	"loose-group-replication-communication-stack=MYSQL",
	"loose-group-replication-recovery-use-ssl=ON",
	"loose-group-replication-member-expel-timeout=0",
	"loose-group-replication-unreachable-majority-timeout=10",
	// A server that cannot be brought up to date finds another way after a minute, and not after ten.
	"loose-group-replication-recovery-reconnect-interval=5",
	"loose-group-replication-exit-state-action=READ_ONLY",
	// A server joins as package group decides.
	"loose-group-replication-autorejoin-tries=0",
	"loose-group-replication-consistency=BEFORE_ON_PRIMARY_FAILOVER",
	"loose-group-replication-message-cache-size=134217728",
}

func onOff(on bool) string {
	if on {
		return "ON"
	}
	return "OFF"
}
