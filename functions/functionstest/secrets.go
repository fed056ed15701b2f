package functionstest

import (
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/pki"
)

// SecretValue returns the value of a key of a component's Secret.
func (c *Crossplane) SecretValue(component, key string) string {
	c.t.Helper()
	b, err := base64.StdEncoding.DecodeString(Get(c.Observed[component], "data", key).GetStringValue())
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

// PublicKeys are the keys of Secrets whose values are not secret.
var PublicKeys = []string{
	appsv1.ConnectionUsername, appsv1.ConnectionHost, appsv1.ConnectionReadOnlyHost, appsv1.ConnectionPort, appsv1.ConnectionDatabase, build.KeyAuthority, build.KeyCertificate,
}

// SecretValues returns the values of all Secrets among some objects, by component and key, without
// those of PublicKeys.
func SecretValues(t testing.TB, objects map[string]*structpb.Struct) map[string]string {
	t.Helper()
	out := map[string]string{}
	for n, o := range objects {
		if Get(o, "kind").GetStringValue() != "Secret" {
			continue
		}
		for k, v := range Get(o, "data").GetStructValue().GetFields() {
			b, err := base64.StdEncoding.DecodeString(v.GetStringValue())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(PublicKeys, k) && len(b) > 0 {
				out[n+"/"+k] = string(b)
			}
		}
	}
	return out
}

// NewYear is when the certificates of CertificateSecret are generated.
var NewYear = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// Secret returns a Secret in the claims' namespace.
func Secret(t testing.TB, name string, values map[string]string) *structpb.Struct {
	t.Helper()
	data := map[string]any{}
	for k, v := range values {
		data[k] = base64.StdEncoding.EncodeToString([]byte(v))
	}
	s, err := structpb.NewStruct(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": "team"}, "data": data})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// CertificateSecret returns a Secret certs with the certificates of a user. They are valid unless
// change, which may be nil, makes them invalid.
func CertificateSecret(t testing.TB, change func(map[string]string)) *structpb.Struct {
	t.Helper()
	ca, err := pki.Authority("company", pki.Pair{}, NewYear)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := pki.Server(ca, []string{"orders-primary.team.svc"}, NewYear)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{build.KeyCertificate: pair.Certificate, build.KeyPrivate: pair.Key, build.KeyAuthority: ca.Certificate}
	if change != nil {
		change(values)
	}
	return Secret(t, "certs", values)
}
