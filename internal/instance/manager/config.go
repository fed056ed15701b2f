package manager

import (
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// Config contains the manager's flags: which server this is, and where its files and APIs are.
type Config struct {
	Pod       string `env:"POD_NAME"      help:"Name of this pod."                                     required:""`
	Namespace string `env:"POD_NAMESPACE" help:"Its namespace."                                        required:""`
	Scope     string `env:"CLUSTER_SCOPE" help:"Name of its StatefulSet, which is Patroni's scope too." required:""`

	Address     string `default:":8009"                       help:"Address at which to serve probes and metrics."`
	Patroni     string `default:"https://127.0.0.1:8008"      help:"Patroni's API of this server."`
	Socket      string `default:"/var/run/postgresql"         help:"Folder of PostgreSQL's socket."`
	Port        uint16 `default:"5432"                        help:"PostgreSQL's port."`
	Volume      string `default:"/var/lib/postgresql/data"    help:"Where the volume is mounted."`
	PatroniDir  string `default:"/etc/patroni"                help:"Folder of Patroni's configuration."`
	TLSDir      string `default:"/etc/storeplane/tls"         help:"Folder of the server's certificate."`
	ControlDir  string `default:"/etc/storeplane/control"     help:"Folder of the certificate that servers know each other by."`
	Credentials string `default:"/etc/storeplane/credentials" help:"Folder of the credentials that are mounted."`

	Repository string `default:"/etc/storeplane/repository"     help:"Folder of pgBackRest's configuration."`
	Store      string `default:"/etc/storeplane/store"          help:"Folder of the store's credentials."`
	Key        string `default:"/etc/storeplane/encryption/key" help:"File of the encryption's key."`
}

// scopeLabel is the label of the pods that the function and Patroni set.
const scopeLabel = "storeplane.example.com/patroni"

// Keys of the Secret credentials.
const (
	keySuperuser   = "superuser-password"
	keyReplication = "replication-password"
	keyRewind      = "rewind-password"
	keyREST        = "restapi-password"
)

func (c Config) selector() string        { return scopeLabel + "=" + c.Scope }
func (c Config) statusName() string      { return c.Scope + "-status" }
func (c Config) leaderName() string      { return c.Scope + "-leader" }
func (c Config) failoverName() string    { return c.Scope + "-failover" }
func (c Config) configName() string      { return c.Scope + "-config" }
func (c Config) volumeName() string      { return "data-" + c.Pod }
func (c Config) apiPort() string         { return c.Address[strings.LastIndexByte(c.Address, ':')+1:] }
func credentialsName(cl string) string   { return cl + "-credentials" }
func (c Config) podName(n int) string    { return c.Scope + "-" + strconv.Itoa(n) }
func (c Config) server() postgres.Server { return postgres.Server{Socket: c.Socket, Port: c.Port} }

func (c Config) control() control.TLS {
	return control.TLS{Dir: c.ControlDir, Name: control.Name(c.Scope, c.Namespace)}
}

// access returns the credentials for the APIs of this cluster's servers.
func (c Config) access() *patroni.Access {
	return patroni.NewAccess(filepath.Join(c.Credentials, keyREST), c.control())
}

// clients returns a function that creates a client for a base URL.
func clients(access *patroni.Access) func(base string) *patroni.Client {
	return func(base string) *patroni.Client { return patroni.At(base, access) }
}

// patroniOf returns the base URL of the API of a pod's Patroni, or "" for a pod without an
// address.
func patroniOf(pod *corev1.Pod) string {
	if pod.Status.PodIP == "" {
		return ""
	}
	return patroni.Base(control.Scheme(&pod.Spec), pod.Status.PodIP, patroni.Port)
}

// ordinal returns the ordinal of a pod of the StatefulSet, or -1 for another name.
func (c Config) ordinal(pod string) int {
	n, ok := strings.CutPrefix(pod, c.Scope+"-")
	if !ok {
		return -1
	}
	i, err := strconv.Atoi(n)
	if err != nil || i < 0 {
		return -1
	}
	return i
}
