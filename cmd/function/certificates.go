package main

import (
	"net"
	"sync/atomic"

	"github.com/crossplane/function-sdk-go"
	"google.golang.org/grpc/credentials"
)

// renewed are the certificates of a folder, which are read again for each connection. The SDK reads
// them once: when Crossplane's certificate authority is replaced, the kubelet writes new ones into
// the folder, and a process that kept the old ones would refuse Crossplane until it is restarted.
type renewed struct {
	credentials.TransportCredentials

	dir  string
	good atomic.Pointer[credentials.TransportCredentials]
}

// newRenewed returns the certificates of a folder. It fails if these are not valid yet.
func newRenewed(dir string) (*renewed, error) {
	c, err := certificates(dir)
	if err != nil {
		return nil, err
	}
	r := &renewed{TransportCredentials: c, dir: dir}
	r.good.Store(&c)
	return r, nil
}

// certificates reads the certificates of a folder.
func certificates(dir string) (credentials.TransportCredentials, error) {
	o := &function.ServeOptions{}
	err := function.MTLSCertificates(dir)(o)
	return o.Credentials, err
}

// ServerHandshake uses the newest certificates that were valid: while the files are written they
// do not match each other.
func (r *renewed) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if c, err := certificates(r.dir); err == nil {
		r.good.Store(&c)
	}
	return (*r.good.Load()).ServerHandshake(conn)
}

// Clone returns r, which reads the same folder.
func (r *renewed) Clone() credentials.TransportCredentials { return r }
