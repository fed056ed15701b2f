package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// groupSize is the number of servers of the group.
const groupSize = 3

// single is the name of the plain server without a group, and grouped the prefix of those of the group.
const (
	single  = "plain-single"
	grouped = "plain-"
)

// groupName is the name of the group that is set up by hand.
const groupName = "5ca1ab1e-0000-4000-8000-000000000003"

// runScript starts MySQL as its documentation describes.
const runScript = `set -eu
data=/var/lib/mysql/data
if [ ! -d "$data/mysql" ]; then
  mysqld --no-defaults --datadir="$data" --lower-case-table-names=0 --secure-file-priv=NULL --initialize-insecure
fi
exec mysqld --defaults-file="/etc/plain/$KIND.cnf" --datadir="$data" --socket=/var/run/mysqld/mysqld.sock --pid-file=/tmp/mysqld.pid \
  --init-file="/etc/users/$KIND.sql" --server-id="$NUMBER" --report-host="$ADDRESS" --loose-group-replication-local-address="$ADDRESS:3306"
`

// initScript creates the users of a plain server, each time that it starts. Its own group has to find the
// same transactions on all.
const initScript = `SET sql_log_bin = 0;
CREATE USER IF NOT EXISTS 'app'@'%%' IDENTIFIED BY '%[1]s';
GRANT ALL ON *.* TO 'app'@'%%';
CREATE USER IF NOT EXISTS 'joins'@'%%' IDENTIFIED BY '%[1]s' REQUIRE SSL;
GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO 'joins'@'%%';
CREATE DATABASE IF NOT EXISTS app;
%[2]sSET sql_log_bin = 1;
`

// joinScript has a server join its group as that user.
const joinScript = "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'joins', SOURCE_PASSWORD = '%s' FOR CHANNEL 'group_replication_recovery';\n"

// plain are servers of the image that nothing manages.
type plain struct {
	*bench

	password string
}

// optionsQuery prints the options of the claim's server: the file that it was started with, and its arguments.
const optionsQuery = `for p in /proc/[0-9]*; do
  read -r name < $p/comm || continue
  [ "$name" = mysqld ] || continue
  tr '\0' '\n' < $p/cmdline | sed -n 's/^--defaults-file=//p' | xargs -r cat
  tr '\0' '\n' < $p/cmdline | sed -n 's/^--//p'
done 2>/dev/null`

// itsOwn are prefixes of the options that are specific to a claim's server and do not affect its speed.
var itsOwn = []string{
	"datadir", "defaults-file", "no-defaults", "pid-file", "report-", "server-id", "socket", "ssl-", "super-read-only", "tmpdir",
	"port", "persisted-globals-load", "lower-case-table-names", "require-secure-transport", "init-connect", "skip-name-resolve",
	"loose-group-replication-ssl-mode", "loose-group-replication-recovery-ssl",
}

// ofGroup are prefixes of the options that a server without a group has no use for.
var ofGroup = []string{"loose-group-replication-", "plugin-load-add"}

// conf returns a file of options from the output of optionsQuery, without those of some prefixes.
func conf(options string, without ...string) string {
	var b strings.Builder
	b.WriteString("[mysqld]\n")
	for line := range strings.Lines(options) {
		line = strings.TrimSpace(line)
		name := strings.ReplaceAll(line, "_", "-")
		if line == "" || strings.HasPrefix(line, "[") || strings.HasPrefix(line, "#") {
			continue
		}
		if !slices.ContainsFunc(without, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// preparePlain creates the ConfigMap and the Secret that the plain servers share.
func (b *bench) preparePlain(ctx context.Context) (plain, error) {
	options, err := b.cluster.Exec(ctx, namespace, claimName+"-mysql-0", "mysql", nil, "sh", "-c", optionsQuery)
	if err != nil {
		return plain{}, fmt.Errorf("cannot read the options of the claim's server: %w", err)
	}
	if !strings.Contains(options, "sync-binlog=1") {
		return plain{}, fmt.Errorf("cannot read the options of the claim's server: they are %q", options)
	}
	p := plain{b, rand.Text()}
	for _, u := range []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{
			"run.sh": runScript, "single.cnf": conf(options, append(ofGroup, itsOwn...)...),
			"group.cnf": conf(options, itsOwn...) + "loose-group-replication-ssl-mode=REQUIRED\n",
		}}},
		{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{
			"single.sql": fmt.Sprintf(initScript, p.password, ""), "group.sql": fmt.Sprintf(initScript, p.password, fmt.Sprintf(joinScript, p.password)),
		}}},
	} {
		u.SetName("plain")
		u.SetNamespace(namespace)
		if _, err := b.cluster.Create(ctx, u); err != nil {
			return plain{}, err
		}
	}
	return p, nil
}

// start starts a server and waits until it accepts connections.
func (p plain) start(ctx context.Context, name, kind string, number int) (server, error) {
	s := server{"plain", fmt.Sprintf("mysql://app:%s@%s.%s.svc:3306/app", p.password, name, namespace)}
	values := map[string]string{"NAME": name, "KIND": kind, "NUMBER": strconv.Itoa(number)}
	if err := p.apply(ctx, values, "benchmysql/volume.yaml", "benchmysql/service.yaml", "benchmysql/pod.yaml"); err != nil {
		return s, err
	}
	err := harness.Await(ctx, started, "server "+name+" to answer", func(ctx context.Context) (bool, error) {
		_, err := p.data(ctx, s, "exec", "mysql", "SELECT 1")
		return err == nil, err
	})
	return s, err
}

// single starts a server without a group.
func (p plain) single(ctx context.Context) (server, error) {
	return p.start(ctx, single, "single", 1)
}

// stop removes a server.
func (p plain) stop(ctx context.Context, name string) error {
	if err := p.cluster.Delete(ctx, "Pod", namespace, name); err != nil {
		return err
	}
	return p.world.AwaitGone(ctx, started, "Pod", name)
}

// group starts the servers of a group, sets it up by the steps of MySQL's manual
// (https://dev.mysql.com/doc/refman/9.7/en/group-replication-deploying-in-single-primary-mode.html), and returns
// its primary.
func (p plain) group(ctx context.Context) (server, error) {
	var all []server
	var seeds []string
	for i := range groupSize {
		name := grouped + strconv.Itoa(i)
		s, err := p.start(ctx, name, "group", i+1)
		if err != nil {
			return s, err
		}
		all = append(all, s)
		seeds = append(seeds, harness.Field(p.world.Get("Pod", name), "status", "podIP")+":3306")
	}
	for i, s := range all {
		begin, end := "", ""
		if i == 0 {
			begin, end = "SET GLOBAL group_replication_bootstrap_group = ON; ", "; SET GLOBAL group_replication_bootstrap_group = OFF"
		}
		statement := fmt.Sprintf("SET GLOBAL group_replication_group_name = '%s'; SET GLOBAL group_replication_group_seeds = '%s'; %sSTART GROUP_REPLICATION%s",
			groupName, strings.Join(seeds, ","), begin, end)
		if _, err := p.data(ctx, s, "exec", "mysql", statement); err != nil {
			return s, err
		}
		err := harness.Await(ctx, started, fmt.Sprintf("%d members", i+1), func(ctx context.Context) (bool, error) {
			out, err := p.data(ctx, all[0], "exec", "mysql", "SELECT count(*) FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'")
			out = strings.TrimSpace(out)
			return out == strconv.Itoa(i+1), fmt.Errorf("there are %q: %w", out, err)
		})
		if err != nil {
			return s, err
		}
	}
	return all[0], nil
}
