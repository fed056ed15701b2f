package manager

import (
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// Config contains the manager's flags: which server this is, and where its files and APIs are.
// The command interpolates their defaults.
type Config struct {
	Pod       string `env:"${podVariable}"       help:"Name of this pod."                                     required:""`
	Namespace string `env:"${namespaceVariable}" help:"Its namespace."                                        required:""`
	Scope     string `env:"${scopeVariable}"     help:"Name of its StatefulSet, which is Patroni's scope too." required:""`

	Address     string `default:":${managerPort}"                  help:"Address at which to serve probes and metrics."`
	Patroni     string `default:"https://127.0.0.1:${patroniPort}" help:"Patroni's API of this server."`
	Socket      string `default:"${socketDir}"                     help:"Folder of PostgreSQL's socket."`
	Port        uint16 `default:"${port}"                          help:"PostgreSQL's port."`
	Volume      string `default:"${volumeDir}"                     help:"Where the volume is mounted."`
	PatroniDir  string `default:"${patroniDir}"                    help:"Folder of Patroni's configuration."`
	TLSDir      string `default:"${tlsDir}"                        help:"Folder of the server's certificate."`
	ControlDir  string `default:"${controlDir}"                    help:"Folder of the certificate that servers know each other by."`
	Credentials string `default:"${credentialsDir}"                help:"Folder of the credentials that are mounted."`

	Repository string `default:"${repositoryDir}" help:"Folder of pgBackRest's configuration."`
	Store      string `default:"${storeDir}"      help:"Folder of the store's credentials."`
	Key        string `default:"${keyFile}"       help:"File of the encryption's key."`
}

func (c Config) selector() string        { return instance.ScopeLabel + "=" + c.Scope }
func (c Config) apiPort() string         { return c.Address[strings.LastIndexByte(c.Address, ':')+1:] }
func (c Config) podName(n int) string    { return instance.Pod(c.Scope, int32(n)) } //nolint:gosec // an ordinal is below instance.MaxSize
func (c Config) server() postgres.Server { return postgres.Server{Socket: c.Socket, Port: c.Port} }

func (c Config) control() control.TLS {
	return control.TLS{Dir: c.ControlDir, Name: control.Name(c.Scope, c.Namespace)}
}

// access returns the credentials for the APIs of this cluster's servers.
func (c Config) access() *patroni.Access {
	return patroni.NewAccess(filepath.Join(c.Credentials, instance.KeyRESTAPI), c.control())
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
	return patroni.Base(control.Scheme(&pod.Spec), pod.Status.PodIP, strconv.Itoa(instance.PatroniPort))
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
