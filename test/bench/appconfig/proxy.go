package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// proxy is an HTTP proxy between a client and the API server that counts requests.
type proxy struct {
	address string
	server  *http.Server

	mu    sync.Mutex
	count map[string]int
}

// request returns the verb and the resource of a client's request, for example "patch
// deployments". A list over all namespaces has the verb "list everywhere".
func request(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	everywhere := true
	if i := slices.Index(parts, "namespaces"); i >= 0 && len(parts) > i+2 {
		parts, everywhere = parts[i+2:], false
	} else if len(parts) > 2 {
		parts = parts[min(len(parts)-1, map[bool]int{true: 2, false: 3}[parts[0] == "api"]):]
	}
	resource, named := parts[0], len(parts) > 1
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	verb := strings.ToLower(r.Method)
	switch {
	case verb == "get" && r.URL.Query().Get("watch") != "":
		verb = "watch"
	case verb == "get" && !named:
		verb = "list"
	}
	if verb == "list" && everywhere {
		verb = "list everywhere"
	}
	return verb + " " + resource
}

// newProxy starts a proxy to an API server, which it authenticates to as the user of cfg.
func newProxy(ctx context.Context, cfg *rest.Config) (*proxy, error) {
	target, err := url.Parse(cfg.Host)
	if err != nil {
		return nil, fmt.Errorf("cannot read the API server's address: %w", err)
	}
	identity, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot read the user's certificate: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	p := &proxy{address: "http://" + l.Addr().String(), count: map[string]int{}}
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     &http.Transport{TLSClientConfig: identity, ForceAttemptHTTP2: true},
		FlushInterval: -1,
	}
	p.server = &http.Server{ReadHeaderTimeout: 0, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.count[request(r)]++
		p.mu.Unlock()
		forward.ServeHTTP(w, r)
	})}
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

// reset sets the counts to zero and returns the previous ones.
func (p *proxy) reset() counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := counts(p.count)
	p.count = map[string]int{}
	return out
}

// counts are numbers of requests, by what request returns.
type counts map[string]int

// of returns the number of requests that begin with one of the words.
func (c counts) of(words ...string) int {
	n := 0
	for k, v := range c {
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(k, w) }) {
			n += v
		}
	}
	return n
}

// writes returns the number of writes of all kinds.
func (c counts) writes() int { return c.of("post ", "put ", "patch ", "delete ") }

func (c counts) String() string {
	var out []string
	for k, v := range c {
		if !strings.HasPrefix(k, "watch ") && !strings.HasSuffix(k, " events") && !strings.Contains(k, "openapi") {
			out = append(out, fmt.Sprintf("%s %d", k, v))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
