package main

import (
	"net"
	"sync/atomic"

	"github.com/crossplane/function-sdk-go"
	"google.golang.org/grpc/credentials"
)

// renewed are the certificates of a folder as they are when a connection begins.
// The SDK reads them once. When Crossplane's certificate authority is replaced, the
// kubelet writes new ones into the folder, and a process that kept the old ones
// would refuse Crossplane until somebody restarts it.
type renewed struct {
	credentials.TransportCredentials

	dir  string
	good atomic.Pointer[credentials.TransportCredentials]
}

// newRenewed certificates, which must be there to begin with.
func newRenewed(dir string) (*renewed, error) {
	c, err := certificates(dir)
	if err != nil {
		return nil, err
	}
	r := &renewed{TransportCredentials: c, dir: dir}
	r.good.Store(&c)
	return r, nil
}

// certificates of a folder.
func certificates(dir string) (credentials.TransportCredentials, error) {
	o := &function.ServeOptions{}
	err := function.MTLSCertificates(dir)(o)
	return o.Credentials, err
}

// ServerHandshake with the newest certificates that were good: while they are
// written they do not fit each other.
func (r *renewed) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if c, err := certificates(r.dir); err == nil {
		r.good.Store(&c)
	}
	return (*r.good.Load()).ServerHandshake(conn)
}

// Clone of the same folder.
func (r *renewed) Clone() credentials.TransportCredentials { return r }
