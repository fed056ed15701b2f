package databasecluster_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/pki"
)

const day = 24 * time.Hour

// clock is a source whose time only changes when the test sets it.
type clock struct {
	compose.SystemSource

	now time.Time
}

func (c *clock) Now() time.Time { return c.now }

func newClock() *clock { return &clock{now: functionstest.NewYear} }

func x509Of(t testing.TB, text string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		t.Fatalf("this is no certificate: %q", text)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// TestTLS: with the connection Secret a client can verify every server, by each of its names.
func TestTLS(t *testing.T) {
	clk := newClock()
	c := simulate(t, functionstest.Production, functions.WithSource(clk))
	c.Settle()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(c.SecretValue("connection", "ca.crt"))) {
		t.Fatalf("ca.crt of the connection Secret is no certificate")
	}
	server := x509Of(t, c.SecretValue("tls", "tls.crt"))
	cases := map[string]struct {
		reason string
		name   string
		fails  bool
	}{
		"Host":      {reason: "The host of the connection Secret.", name: c.SecretValue("connection", "host")},
		"ReadOnly":  {reason: "The host to read from.", name: c.SecretValue("connection", "ro-host")},
		"Short":     {reason: "The same from within the namespace.", name: "orders-primary"},
		"Namespace": {reason: "The same from another one.", name: "orders-primary.team"},
		"Full":      {reason: "The same in full.", name: "orders-replica.team.svc.cluster.local"},
		"Pod":       {reason: "A server by itself.", name: "orders-postgresql-2.orders-postgresql.team.svc.cluster.local"},
		"Inside":    {reason: "Who is in the pod.", name: "localhost"},
		"Claim":     {reason: "Another claim's server is another.", name: "others-primary.team.svc", fails: true},
		"Elsewhere": {reason: "So is one of another namespace.", name: "orders-primary.other.svc", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := server.Verify(x509.VerifyOptions{DNSName: tc.name, Roots: roots, CurrentTime: clk.now})
			if (err != nil) != tc.fails {
				t.Errorf("%s\n%s: got %v", tc.reason, tc.name, err)
			}
		})
	}
	if got := c.SecretValue("tls", "ca.crt"); got != c.SecretValue("connection", "ca.crt") {
		t.Errorf("The servers trust the same authority as the clients")
	}
	for n := range c.Observed {
		if n != "ca" && n != "backup-tls" && n != "control-tls" && functionstest.Get(c.Observed[n], "data", "ca.key") != nil {
			t.Errorf("The authority's key is in its own Secret only, and in %s", n)
		}
	}
}

// TestRenewal: certificates are kept until they are about to expire, and renewed then. No pod is
// replaced for it.
func TestRenewal(t *testing.T) {
	type want struct{ authority, server bool }
	take := func(component, key string) func(*crossplane) {
		return func(c *crossplane) { delete(functionstest.Fields(c.Observed[component], "data"), key) }
	}
	cases := map[string]struct {
		reason string
		after  time.Duration
		change func(*crossplane)
		want   want // renewed
	}{
		"Soon":           {reason: "What holds is read back.", after: time.Minute},
		"Before":         {reason: "Also a day before it is renewed.", after: 59 * day},
		"ThirtyDays":     {reason: "Thirty days before its end a certificate is renewed.", after: 60 * day, want: want{server: true}},
		"After":          {reason: "Also when the day was missed.", after: 61 * day, want: want{server: true}},
		"Ended":          {reason: "Also when it has ended.", after: 100 * day, want: want{server: true}},
		"SixYears":       {reason: "An authority outlives many.", after: 6 * 365 * day, want: want{server: true}},
		"SevenYears":     {reason: "It is renewed three years before its end.", after: 7*365*day + time.Hour, want: want{authority: true, server: true}},
		"NoCertificate":  {reason: "A certificate that is taken out is made anew.", change: take("tls", "tls.crt"), want: want{server: true}},
		"NoKey":          {reason: "So is one whose key is.", change: take("tls", "tls.key"), want: want{server: true}},
		"NoSecret":       {reason: "So is one whose Secret is gone.", change: func(c *crossplane) { delete(c.Observed, "tls") }, want: want{server: true}},
		"Unreadable":     {reason: "So is what is none.", change: func(c *crossplane) { functionstest.Set(c.Observed["tls"], "bm9uZQ==", "data", "tls.crt") }, want: want{server: true}},
		"NoBase64":       {reason: "Whatever it is.", change: func(c *crossplane) { functionstest.Set(c.Observed["tls"], "%", "data", "tls.key") }, want: want{server: true}},
		"NoAuthorityKey": {reason: "To take the authority's key out is to want another authority.", change: take("ca", "ca.key"), want: want{authority: true, server: true}},
		"NoAuthority":    {reason: "So is to delete it.", change: func(c *crossplane) { delete(c.Observed, "ca") }, want: want{authority: true, server: true}},
		"StrangersCertificate": {
			reason: "What another authority signed is none of ours.",
			change: func(c *crossplane) {
				s := functionstest.Get(functionstest.CertificateSecret(t, nil), "data").GetStructValue().GetFields()
				functionstest.Set(c.Observed["tls"], s["tls.crt"].GetStringValue(), "data", "tls.crt")
				functionstest.Set(c.Observed["tls"], s["tls.key"].GetStringValue(), "data", "tls.key")
			},
			want: want{server: true},
		},
	}
	check := func(tc struct {
		reason string
		after  time.Duration
		change func(*crossplane)
		want   want
	}, refused bool,
	) func(*testing.T) {
		return func(t *testing.T) {
			clk := newClock()
			c := simulate(t, functionstest.Production, functions.WithSource(clk))
			c.Settle()
			ca, server, template := c.SecretValue("ca", "ca.crt"), c.SecretValue("tls", "tls.crt"), proto.CloneOf(functionstest.Get(c.Observed["postgresql"], "spec"))
			clk.now = functionstest.NewYear.Add(tc.after)
			if tc.change != nil {
				tc.change(c)
			}
			if refused {
				if c.Observed["tls"] == nil || c.Observed["ca"] == nil {
					// What does not exist is not created for a claim that is refused.
					return
				}
				// Certificates of a refused claim are renewed too: it may stay refused for long.
				c.Edit("1Gi", "storageSize")
			}
			c.Reconcile()
			got := want{authority: c.SecretValue("ca", "ca.crt") != ca, server: c.SecretValue("tls", "tls.crt") != server}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if !proto.Equal(template, functionstest.Get(c.Observed["postgresql"], "spec")) {
				t.Errorf("%s\nNo pod is replaced for a certificate", tc.reason)
			}
			if err := pki.Check(pki.Pair{Certificate: c.SecretValue("tls", "tls.crt"), Key: c.SecretValue("tls", "tls.key")}, c.SecretValue("tls", "ca.crt")); err != nil {
				t.Errorf("%s\n%v", tc.reason, err)
			}
			for _, component := range []string{"tls", "connection"} {
				if c.SecretValue(component, "ca.crt") != c.SecretValue("ca", "ca.crt") {
					t.Errorf("%s\n%s has another authority", tc.reason, component)
				}
			}
			again := c.SecretValue("tls", "tls.crt")
			if refused {
				// One pass sets the generation that is refused.
				c.Reconcile()
				if status, _ := c.Condition("Accepted"); status != "False" || !converge.IsFatal(c.Reconcile()) || c.SecretValue("tls", "tls.crt") != again {
					t.Errorf("%s\nWhile nothing is due a refusal changes nothing: Accepted %s", tc.reason, status)
				}
				return
			}
			if c.Settle(); c.SecretValue("tls", "tls.crt") != again {
				t.Errorf("%s\nIt is renewed once", tc.reason)
			}
		}
	}
	for name, tc := range cases {
		t.Run(name, check(tc, false))
		t.Run(name+"Refused", check(tc, true))
	}
}

// TestRenewalOfDumps: backups get the authority of the servers whatever becomes of the claim.
func TestRenewalOfDumps(t *testing.T) {
	clk := newClock()
	c := simulate(t, "{engine: mysql, size: 1, version: '9.7', storageSize: 10Gi}", functions.WithSource(clk))
	c.Settle()
	before := c.SecretValue("ca", "ca.crt")
	clk.now = functionstest.NewYear.Add(7*365*day + time.Hour)
	c.Edit("1Gi", "storageSize")
	c.Reconcile()
	if ca := c.SecretValue("ca", "ca.crt"); ca == before || c.SecretValue("dumper", "ca.crt") != ca {
		t.Errorf("want another authority, also for backups: renewed %t", ca != before)
	}
}

// TestControlTLS: servers identify each other by a certificate of an authority that signs nothing
// else, whichever authority has signed that of PostgreSQL. It is also renewed for a refused claim,
// and no pod is replaced for it.
func TestControlTLS(t *testing.T) {
	for name, spec := range map[string]string{"Own": functionstest.OneServer, "Brought": "{size: 1, version: '17', tls: {secretName: certs}}"} {
		t.Run(name, func(t *testing.T) {
			clk := newClock()
			c := simulate(t, spec, functions.WithSource(clk))
			c.Others = append(c.Others, functionstest.CertificateSecret(t, nil))
			c.Settle()
			check := func() *x509.Certificate {
				t.Helper()
				roots := x509.NewCertPool()
				if !roots.AppendCertsFromPEM([]byte(c.SecretValue("control-tls", "ca.crt"))) {
					t.Fatal("ca.crt of control-tls is no certificate")
				}
				if got := functionstest.Get(c.Observed["config"], "data", "control.crt").GetStringValue(); got != c.SecretValue("control-tls", "ca.crt") {
					t.Errorf("Prometheus verifies the servers by another authority: %q", got)
				}
				cert := x509Of(t, c.SecretValue("control-tls", "tls.crt"))
				for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
					if _, err := cert.Verify(x509.VerifyOptions{DNSName: "orders-postgresql.team.svc", Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: clk.now}); err != nil {
						t.Errorf("a server is not known by it as %d: %v", usage, err)
					}
				}
				server := c.SecretValue("tls", "tls.crt")
				if server == "" {
					server = decoded(t, functionstest.Get(c.Others[0], "data", "tls.crt").GetStringValue())
				}
				if _, err := x509Of(t, server).Verify(x509.VerifyOptions{Roots: roots, CurrentTime: clk.now}); err == nil {
					t.Error("the certificate that clients see opens the servers' own APIs")
				}
				return cert
			}
			first, template := check(), proto.CloneOf(functionstest.Get(c.Observed["postgresql"], "spec"))
			clk.now = clk.now.Add(61 * day)
			c.Edit("1Gi", "storageSize")
			c.Reconcile()
			if second := check(); second.Equal(first) || !second.NotAfter.After(first.NotAfter) {
				t.Error("it is not renewed while the claim is refused")
			}
			if status, _ := c.Condition("Accepted"); status != "False" || !proto.Equal(template, functionstest.Get(c.Observed["postgresql"], "spec")) {
				t.Errorf("no pod is replaced for it: Accepted %s", status)
			}
		})
	}
}

func decoded(t *testing.T, text string) string {
	t.Helper()
	out, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestAuthorityKey: a client that trusts the old certificate of the authority accepts what the
// renewed one signs, and the other way round.
func TestAuthorityKey(t *testing.T) {
	clk := newClock()
	c := simulate(t, functionstest.OneServer, functions.WithSource(clk))
	c.Settle()
	key, old := c.SecretValue("ca", "ca.key"), x509Of(t, c.SecretValue("ca", "ca.crt"))
	clk.now = functionstest.NewYear.Add(7*365*day + time.Hour)
	c.Settle()
	renewed, server := x509Of(t, c.SecretValue("ca", "ca.crt")), x509Of(t, c.SecretValue("tls", "tls.crt"))
	if bytes.Equal(old.Raw, renewed.Raw) {
		t.Fatalf("want another certificate of the authority")
	}
	if c.SecretValue("ca", "ca.key") != key || !renewed.PublicKey.(*ecdsa.PublicKey).Equal(old.PublicKey) {
		t.Errorf("want the same key")
	}
	for what, root := range map[string]*x509.Certificate{"the old one": old, "the renewed one": renewed} {
		roots := x509.NewCertPool()
		roots.AddCert(root)
		if _, err := server.Verify(x509.VerifyOptions{DNSName: "orders-primary.team.svc", Roots: roots, CurrentTime: clk.now}); err != nil {
			t.Errorf("a client that trusts %s: %v", what, err)
		}
	}
}

func TestSSLMode(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"Default":  {reason: "A client does not come in the clear.", spec: functionstest.OneServer, want: "sslmode=require"},
		"Required": {reason: "So it is when the claim says so.", spec: "{size: 1, version: '17', tls: {required: true}}", want: "sslmode=require"},
		"Optional": {reason: "One that cannot do it comes as it can.", spec: "{size: 1, version: '17', tls: {required: false}}", want: "sslmode=prefer"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Reconcile()
			for _, k := range []string{"uri", "jdbc-uri"} {
				if got := c.SecretValue("connection", k); strings.Count(got, "sslmode=") != 1 || !strings.Contains(got, tc.want) {
					t.Errorf("%s\n%s: want %s, got %s", tc.reason, k, tc.want, got)
				}
			}
		})
	}
}

const broughtTLS = "{size: 1, version: '17', tls: {secretName: certs}}"

func TestBroughtTLS(t *testing.T) {
	without := func(key string) func(map[string]string) {
		return func(v map[string]string) { delete(v, key) }
	}
	to := func(key, value string) func(map[string]string) {
		return func(v map[string]string) { v[key] = value }
	}
	const unusable = "tls.secretName: Secret certs cannot be used: "
	const pairless = unusable + "tls.crt and tls.key are no pair: "
	missing := func(key string) string {
		return fmt.Sprintf("tls.secretName: Secret certs does not exist or has no key %s: create it", key)
	}
	cases := map[string]struct {
		reason  string
		secrets []*structpb.Struct
		want    string
	}{
		"Good":        {reason: "What fits is taken.", secrets: []*structpb.Struct{functionstest.CertificateSecret(t, nil)}},
		"NoSecret":    {reason: "The Secret is missing.", want: missing("tls.crt")},
		"OtherSecret": {reason: "Another is not meant.", secrets: []*structpb.Struct{functionstest.Secret(t, "certificates", nil)}, want: missing("tls.crt")},
		"NoData":      {reason: "It has nothing.", secrets: []*structpb.Struct{functionstest.CertificateSecret(t, func(v map[string]string) { clear(v) })}, want: missing("tls.crt")},
		"NoCert":      {reason: "It lacks the certificate.", secrets: []*structpb.Struct{functionstest.CertificateSecret(t, without("tls.crt"))}, want: missing("tls.crt")},
		"NoKey":       {reason: "It lacks the key.", secrets: []*structpb.Struct{functionstest.CertificateSecret(t, without("tls.key"))}, want: missing("tls.key")},
		"NoCA":        {reason: "It lacks the authority: clients could not verify.", secrets: []*structpb.Struct{functionstest.CertificateSecret(t, without("ca.crt"))}, want: missing("ca.crt")},
		"EmptyCA":     {reason: "Nothing is none.", secrets: []*structpb.Struct{functionstest.CertificateSecret(t, to("ca.crt", ""))}, want: missing("ca.crt")},
		"NoPEM":       {reason: "The certificate is none.", secrets: []*structpb.Struct{functionstest.CertificateSecret(t, to("tls.crt", "x"))}, want: pairless + "failed to find any PEM data in certificate input"},
		"NoPEMKey":    {reason: "The key is none.", secrets: []*structpb.Struct{functionstest.CertificateSecret(t, to("tls.key", "hunter2"))}, want: pairless + "failed to find any PEM data in key input"},
		"OtherKey":    {reason: "The key is another's.", secrets: []*structpb.Struct{functionstest.CertificateSecret(t, to("tls.key", otherKey(t)))}, want: pairless + "private key does not match public key"},
		"NoPEMCA":     {reason: "The authority is none.", secrets: []*structpb.Struct{functionstest.CertificateSecret(t, to("ca.crt", "x"))}, want: unusable + "ca.crt: it is no certificate in PEM"},
		"KeyAsCA":     {reason: "A key is no authority, and not repeated.", secrets: []*structpb.Struct{functionstest.CertificateSecret(t, func(v map[string]string) { v["ca.crt"] = v["tls.key"] })}, want: unusable + "ca.crt: it is no certificate in PEM"},
		"GarbledCA":   {reason: "PEM alone makes no certificate.", secrets: []*structpb.Struct{functionstest.CertificateSecret(t, to("ca.crt", "-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n"))}, want: unusable + "ca.crt: it is no certificate that can be read"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, broughtTLS)
			c.Others = tc.secrets
			rsp := c.Reconcile()
			got := ""
			if r := rsp.GetResults(); len(r) > 0 {
				got = r[0].GetMessage()
			}
			if got != tc.want {
				t.Fatalf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
			if (len(c.Observed) == 0) != (tc.want != "") {
				t.Errorf("%s\ngot %v", tc.reason, c.ComponentNames())
			}
		})
	}
}

func otherKey(t testing.TB) string {
	t.Helper()
	ca, err := pki.Authority("other", pki.Pair{}, functionstest.NewYear)
	if err != nil {
		t.Fatal(err)
	}
	return ca.Key
}

// TestBroughtAuthority: clients get the authority of the user's certificate, and nothing of the
// user's key is copied.
func TestBroughtAuthority(t *testing.T) {
	c := simulate(t, broughtTLS)
	brought := functionstest.CertificateSecret(t, nil)
	c.Others = append(c.Others, brought)
	c.Settle()
	data := functionstest.Get(brought, "data").GetStructValue()
	if got := functionstest.Get(c.Observed["connection"], "data", "ca.crt").GetStringValue(); got != functionstest.Get(data, "ca.crt").GetStringValue() {
		t.Errorf("want the user's authority in the connection Secret, got %s", got)
	}
	for n, o := range c.Observed {
		if strings.Contains(o.String(), functionstest.Get(data, "tls.key").GetStringValue()) {
			t.Errorf("%s holds the user's key", n)
		}
	}

	// A new authority reaches the clients.
	c.Others = []*structpb.Struct{functionstest.CertificateSecret(t, nil)}
	c.Reconcile()
	if got := functionstest.Get(c.Observed["connection"], "data", "ca.crt").GetStringValue(); got != functionstest.Get(c.Others[0], "data", "ca.crt").GetStringValue() {
		t.Errorf("want the user's new authority in the connection Secret, got %s", got)
	}

	// A Secret that was deleted stops nothing that runs.
	before := c.ComponentNames()
	c.Others = nil
	rsp := c.Reconcile()
	if r := rsp.GetResults(); len(r) != 1 || r[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL || !slices.Equal(before, c.ComponentNames()) {
		t.Errorf("want a refusal that changes nothing, got %v and %v", r, c.ComponentNames())
	}
}

// TestChangesTLS: a claim changes from its own authority to the user's, and back.
func TestChangesTLS(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Others = append(c.Others, functionstest.CertificateSecret(t, nil))
	c.Settle()
	own := c.SecretValue("connection", "ca.crt")
	c.Edit(map[string]any{"secretName": "certs"}, "tls")
	c.Settle()
	if c.Observed["ca"] != nil || c.Observed["tls"] != nil {
		t.Errorf("the authority goes when it signs no certificate, got %v", c.ComponentNames())
	}
	c.Edit(nil, "tls")
	c.Settle()
	if got := c.SecretValue("connection", "ca.crt"); got == own || got != c.SecretValue("ca", "ca.crt") {
		t.Errorf("want a new authority")
	}
}

// TestPeers: while authorities change, servers trust the present one and the two before it.
func TestPeers(t *testing.T) {
	c := simulate(t, functionstest.Production)
	bring := func(text string) string {
		c.Others = []*structpb.Struct{functionstest.CertificateSecret(t, func(values map[string]string) { values["ca.crt"] = text + values["ca.crt"] + "\n" })}
		c.Edit(map[string]any{"secretName": "certs"}, "tls")
		c.Settle()
		ca, _ := compose.SecretValue(c.Others[0], "ca.crt")
		return strings.TrimSuffix(ca, "\n")
	}
	peers := func() string { return functionstest.Get(c.Observed["config"], "data", "peers.crt").GetStringValue() }

	c.Settle()
	own := c.SecretValue("ca", "ca.crt")
	if diff := cmp.Diff(own, peers()); diff != "" {
		t.Errorf("one authority is known at first\n-want, +got:\n%s", diff)
	}
	first := bring("")
	if diff := cmp.Diff(first+own, peers()); diff != "" {
		t.Errorf("the one that was brought comes first\n-want, +got:\n%s", diff)
	}
	c.Reconcile()
	if diff := cmp.Diff(first+own, peers()); diff != "" {
		t.Errorf("another pass changes nothing\n-want, +got:\n%s", diff)
	}
	// The user's file may hold several authorities.
	second := bring(own)
	if diff := cmp.Diff(second+first, peers()); diff != "" {
		t.Errorf("what is present is not kept twice\n-want, +got:\n%s", diff)
	}
	third := bring("")
	if diff := cmp.Diff(third+second, peers()); diff != "" {
		t.Errorf("two are kept beside the present one\n-want, +got:\n%s", diff)
	}
}

// TestPending: until Crossplane has fetched the Secrets that the claim refers to, the function
// requests all of them at once and changes nothing.
func TestPending(t *testing.T) {
	secret := func(name string) *fnv1.ResourceSelector {
		return &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "Secret", Namespace: new("team"), Match: &fnv1.ResourceSelector_MatchName{MatchName: name}}
	}
	cases := map[string]struct {
		reason string
		spec   string
		want   map[string]*fnv1.ResourceSelector
	}{
		"TLS":      {reason: "Certificates.", spec: broughtTLS, want: map[string]*fnv1.ResourceSelector{"tls": secret("certs")}},
		"Password": {reason: "A password.", spec: "{size: 1, version: '17', users: [{name: reader, passwordSecretRef: {name: mine}}]}", want: map[string]*fnv1.ResourceSelector{"password-reader": secret("mine")}},
		"Many": {
			reason: "Crossplane calls six times at most, so nothing is asked for one after the other.",
			spec: `{size: 1, version: '17', tls: {secretName: certs}, users: [{name: a, passwordSecretRef: {name: mine}}, {name: b, passwordSecretRef: {name: mine}}, {name: c, passwordSecretRef: {name: other}},
  {name: d, passwordSecretRef: {name: mine}}, {name: e, passwordSecretRef: {name: mine}}, {name: f, passwordSecretRef: {name: mine}}, {name: g}]}`,
			want: map[string]*fnv1.ResourceSelector{
				"tls": secret("certs"), "password-a": secret("mine"), "password-b": secret("mine"), "password-c": secret("other"),
				"password-d": secret("mine"), "password-e": secret("mine"), "password-f": secret("mine"),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Others = []*structpb.Struct{functionstest.CertificateSecret(t, nil), functionstest.Secret(t, "mine", map[string]string{"password": "a"}), functionstest.Secret(t, "other", map[string]string{"password": "b"})}
			check := func(when string) {
				t.Helper()
				rsp, err := c.Function.RunFunction(t.Context(), c.Request())
				if err != nil {
					t.Fatal(err)
				}
				if len(rsp.GetResults()) > 0 {
					t.Fatalf("%s\n%s: a fatal result ends the call before anything is fetched: %v", tc.reason, when, rsp.GetResults())
				}
				got := rsp.GetRequirements().GetResources()
				// Existing objects of the same names and pods are requested too.
				maps.DeleteFunc(got, func(name string, _ *fnv1.ResourceSelector) bool {
					return name == "pods" || strings.HasPrefix(name, "existing/")
				})
				if diff := cmp.Diff(tc.want, got, protocmp.Transform()); diff != "" {
					t.Errorf("%s\n%s: -want, +got:\n%s", tc.reason, when, diff)
				}
				kept := slices.Sorted(maps.Keys(rsp.GetDesired().GetResources()))
				if diff := cmp.Diff(c.ComponentNames(), kept, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s\n%s: nothing new is applied and nothing goes: -there, +applied:\n%s", tc.reason, when, diff)
				}
				for n, r := range rsp.GetDesired().GetResources() {
					for _, f := range []string{"spec", "data"} {
						if !proto.Equal(functionstest.Get(c.Observed[n], f), functionstest.Get(r.GetResource(), f)) {
							t.Errorf("%s\n%s: %s of %s is changed", tc.reason, when, f, n)
						}
					}
				}
			}
			check("Before anything is there")
			c.Settle()
			c.Edit("17.5", "version")
			check("While it runs")
		})
	}
}
