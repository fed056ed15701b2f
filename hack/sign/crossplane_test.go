package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg/parser"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg/signature"
	"github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"
	"github.com/google/go-containerregistry/pkg/authn/kubernetes"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// TestMain keeps all tests off the network: an invalid proxy makes other machines unreachable.
func TestMain(m *testing.M) {
	_ = os.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	os.Exit(m.Run())
}

// cluster is a client with the objects that Crossplane reads from the API server to verify a
// package.
type cluster struct {
	client.Client

	key     []byte
	configs []v1beta1.ImageConfig
}

// Get returns the Secret with the public key, and an error for any other object.
func (c *cluster) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	s, ok := obj.(*corev1.Secret)
	if !ok || key.String() != "crossplane-system/storeplane-cosign" {
		return fmt.Errorf("there is no %T %s", obj, key)
	}
	s.Data = map[string][]byte{"cosign.pub": c.key}
	return nil
}

// List returns the ImageConfigs.
func (c *cluster) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1beta1.ImageConfigList).Items = c.configs
	return nil
}

// fetcher reads from registries without credentials.
type fetcher struct{}

func (fetcher) Fetch(_ context.Context, ref name.Reference, _ ...string) (v1.Image, error) {
	return remote.Image(ref)
}

func (fetcher) Head(_ context.Context, ref name.Reference, _ ...string) (*v1.Descriptor, error) {
	return remote.Head(ref)
}

func (fetcher) Tags(_ context.Context, ref name.Reference, _ ...string) ([]string, error) {
	return remote.List(ref.Context())
}

// drained is a cache that stores nothing.
type drained struct{ xpkg.NopCache }

// Store reads the content to its end, because the client writes it while it parses it.
func (drained) Store(_ string, content io.ReadCloser) error {
	_, err := io.Copy(io.Discard, content)
	return err
}

// crossplane returns Crossplane's own package client with its signature validator.
func crossplane(t *testing.T, c *cluster) xpkg.Client {
	t.Helper()
	validator, err := signature.NewCosignValidator(c, nil, "crossplane-system", kubernetes.NoServiceAccount)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := xpkg.BuildMetaScheme()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := xpkg.BuildObjectScheme()
	if err != nil {
		t.Fatal(err)
	}
	return xpkg.NewCachedClient(fetcher{}, parser.New(meta, objects), &drained{}, xpkg.NewImageConfigStore(c, "crossplane-system"), validator)
}

// config returns the release's ImageConfig for a registry and path.
func config(t *testing.T, registry string) v1beta1.ImageConfig {
	t.Helper()
	text := strings.ReplaceAll(string(read(t, "../../package/release/verification.yaml")), "REGISTRY", registry)
	out := v1beta1.ImageConfig{}
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// aPackage returns the package of a Function as Crossplane's command builds it.
func aPackage(t *testing.T, name string) v1.Image {
	t.Helper()
	text := fmt.Sprintf("apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata:\n  name: %s\n", name)
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: xpkg.StreamFile, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	img, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer:       static.NewLayer(layer.Bytes(), types.DockerUncompressedLayer),
		Annotations: map[string]string{xpkg.AnnotationKey: xpkg.PackageAnnotation},
	})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// aLog returns a handler that signs entries of a transparency log with the given key. It handles
// the one request that cosign makes.
func aLog(t *testing.T, key *signer) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/api/v1/log/entries" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		signed, err := key.signEntry(body, time.Now())
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{fmt.Sprintf("%x", sha256.Sum256(body)): map[string]any{
			"body": signed.Payload.Body, "integratedTime": signed.Payload.IntegratedTime, "logID": signed.Payload.LogID, "logIndex": signed.Payload.LogIndex,
			"verification": map[string]any{"signedEntryTimestamp": base64.StdEncoding.EncodeToString(signed.SignedEntryTimestamp)},
		}})
	})
}

// TestCrossplane: with the release's ImageConfig and trust root, Crossplane's own client installs
// the packages that this program has signed, and no others, without a network.
func TestCrossplane(t *testing.T) {
	ours, theirs := keys(t), keys(t)
	out := t.TempDir()
	if err := testSigner(t, ours).writeTrust(out); err != nil {
		t.Fatal(err)
	}
	// Crossplane reads the trust root once per process.
	t.Setenv("TUF_ROOT", trusted(t, read(t, out+"/"+trustRootFile)))

	sign := func(t *testing.T, dir string, images ...string) {
		t.Helper()
		if err := (&imagesCmd{Key: dir + "/cosign.key", Image: images}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	const image = "/function-storeplane:v1.2.3"
	cases := map[string]struct {
		reason string
		given  func(t *testing.T, at string)
		want   string
	}{
		"Signed": {
			reason: "What the key has signed is installed.",
			given: func(t *testing.T, at string) {
				push(t, at+image, aPackage(t, "a"))
				sign(t, ours, at+image)
			},
		},
		"SignedTwice": {
			reason: "A signature of another key beside ours does no harm.",
			given: func(t *testing.T, at string) {
				push(t, at+image, aPackage(t, "a"))
				sign(t, theirs, at+image)
				sign(t, ours, at+image)
				sign(t, ours, at+image)
			},
		},
		"Loaded": {
			reason: "The signatures of a release's folder hold in every registry.",
			given: func(t *testing.T, at string) {
				dir := releaseFolder(t, aPackage(t, "a"))
				if err := os.Rename(dir+"/images/storeplane", dir+"/images/function-storeplane"); err != nil {
					t.Fatal(err)
				}
				write(t, dir+"/"+checksums, strings.ReplaceAll(string(read(t, dir+"/"+checksums)), "images/storeplane", "images/function-storeplane"))
				if err := (&imagesCmd{Key: ours + "/cosign.key", Release: dir}).Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				load(t, dir, at)
			},
		},
		"Unsigned": {
			reason: "A package without a signature is refused.",
			given:  func(t *testing.T, at string) { push(t, at+image, aPackage(t, "a")) },
			want:   "signature verification failed with no signatures found",
		},
		"OtherKey": {
			reason: "A signature of another key, and its log, is refused.",
			given: func(t *testing.T, at string) {
				push(t, at+image, aPackage(t, "a"))
				sign(t, theirs, at+image)
			},
			want: "no matching signatures: error verifying bundle: comparing public key PEMs",
		},
		"OtherKeyAlone": {
			reason: "The key is compared, not only whose log has it.",
			given: func(t *testing.T, at string) {
				push(t, at+image, aPackage(t, "a"))
				server := httptest.NewServer(aLog(t, testSigner(t, ours)))
				defer server.Close()
				s := testSigner(t, theirs)
				s.pem = testSigner(t, ours).pem
				if err := s.useLog(server.URL); err != nil {
					t.Fatal(err)
				}
				if err := s.images(t.Context(), []string{at + image}); err != nil {
					t.Fatal(err)
				}
			},
			want: "verifying signature: invalid signature when validating ASN.1 encoded signature",
		},
		"Replaced": {
			reason: "Other content under the tag is refused: the digest is signed.",
			given: func(t *testing.T, at string) {
				push(t, at+image, aPackage(t, "a"))
				sign(t, ours, at+image)
				push(t, at+image, aPackage(t, "b"))
			},
			want: "signature verification failed with no signatures found",
		},
		"Copied": {
			reason: "A signature of another package is refused at this one.",
			given: func(t *testing.T, at string) {
				tag := func(digest string) string {
					return at + "/function-storeplane:" + strings.Replace(digest, ":", "-", 1) + ".sig"
				}
				signed := push(t, at+image, aPackage(t, "a"))
				sign(t, ours, at+image)
				sig, err := remote.Image(parse(t, tag(signed)))
				if err != nil {
					t.Fatal(err)
				}
				push(t, tag(push(t, at+image, aPackage(t, "b"))), sig)
			},
			want: "invalid or missing digest in claim",
		},
		"NoEntry": {
			reason: "Crossplane wants an entry in a log: were it not so, ours could be left out.",
			given: func(t *testing.T, at string) {
				push(t, at+image, aPackage(t, "a"))
				sign(t, ours, at+image)
				withoutEntry(t, at+image)
			},
			want: "rekor client not provided for online verification",
		},
	}
	key := read(t, ours+"/cosign.pub")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := serve(t)
			tc.given(t, at)
			c := crossplane(t, &cluster{key: key, configs: []v1beta1.ImageConfig{config(t, at)}})
			got, err := c.Get(t.Context(), at+image)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			verified := false
			for _, applied := range got.AppliedImageConfigs {
				verified = verified || applied.Reason == xpkg.ImageConfigReasonVerify
			}
			if !verified {
				t.Errorf("%s\nIt was not verified: %v", tc.reason, got.AppliedImageConfigs)
			}
		})
	}

	t.Run("Log", func(t *testing.T) { checkLog(t, ours, theirs) })
	t.Run("Mirror", func(t *testing.T) { checkMirror(t, key) })
}

// TestVersions: this program is built with the same versions of the verifying modules as the
// Crossplane with which a release is tested.
func TestVersions(t *testing.T) {
	version := func(file, module string) string {
		found := regexp.MustCompile(regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(read(t, file))
		if found == nil {
			t.Fatalf("%s does not require %s", file, module)
		}
		return string(found[1])
	}
	for _, module := range []string{"github.com/crossplane/crossplane-runtime/v2", "github.com/sigstore/cosign/v3", "github.com/sigstore/sigstore"} {
		want, got := version("../../test/cluster/tools/crossplane/go.mod", module), version("go.mod", module)
		if want != got {
			t.Errorf("%s: want %s, which Crossplane is built with, got %s", module, want, got)
		}
	}
}

// withoutEntry replaces the signature of an image by the same one without its entry in a log.
func withoutEntry(t *testing.T, image string) {
	t.Helper()
	desc, err := remote.Head(parse(t, image))
	if err != nil {
		t.Fatal(err)
	}
	tag := parse(t, image).Context().Tag(strings.Replace(desc.Digest.String(), ":", "-", 1) + ".sig")
	img, err := remote.Image(tag)
	if err != nil {
		t.Fatal(err)
	}
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	const entry = "dev.sigstore.cosign/bundle"
	annotations := maps.Clone(m.Layers[0].Annotations)
	if annotations[entry] == "" {
		t.Fatalf("there is no entry to leave out: %v", annotations)
	}
	delete(annotations, entry)
	bare, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{Layer: layers[0], Annotations: annotations})
	if err != nil {
		t.Fatal(err)
	}
	push(t, tag.String(), bare)
}

// checkLog checks that a signature with an entry of a log server verifies if Crossplane trusts
// that log, and fails otherwise.
func checkLog(t *testing.T, ours, theirs string) {
	t.Helper()
	for name, tc := range map[string]struct{ log, want string }{
		"Trusted": {log: ours},
		"Other":   {log: theirs, want: "rekor log public key not found"},
	} {
		t.Run(name, func(t *testing.T) {
			at, server := serve(t), httptest.NewServer(aLog(t, testSigner(t, tc.log)))
			defer server.Close()
			image := at + "/function-storeplane:v1.2.3"
			push(t, image, aPackage(t, "a"))
			if err := (&imagesCmd{Key: ours + "/cosign.key", Image: []string{image}, RekorURL: server.URL}).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			c := crossplane(t, &cluster{key: read(t, ours+"/cosign.pub"), configs: []v1beta1.ImageConfig{config(t, at)}})
			_, err := c.Get(t.Context(), image)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q, got %v", tc.want, err)
			}
		})
	}
}

// checkMirror checks that, if an ImageConfig redirects a package to a mirror, Crossplane compares
// the prefix of the verification with the mirror's address and looks for signatures in the
// mirror.
func checkMirror(t *testing.T, key []byte) {
	t.Helper()
	const named = "registry.example.com/storeplane"
	at := serve(t)
	push(t, at+"/function-storeplane:v1.2.3", aPackage(t, "a"))
	mirror := v1beta1.ImageConfig{Spec: v1beta1.ImageConfigSpec{
		MatchImages:  []v1beta1.ImageMatch{{Type: v1beta1.Prefix, Prefix: named + "/"}},
		RewriteImage: &v1beta1.ImageRewrite{Prefix: at + "/"},
	}}
	for name, tc := range map[string]struct {
		reason, prefix, want string
	}{
		"Mirror": {reason: "With the mirror's prefix the package is verified.", prefix: at, want: "signature verification failed with no signatures found"},
		"Name":   {reason: "With the prefix of its name it is not.", prefix: named},
	} {
		t.Run(name, func(t *testing.T) {
			c := crossplane(t, &cluster{key: key, configs: []v1beta1.ImageConfig{mirror, config(t, tc.prefix)}})
			_, err := c.Get(t.Context(), named+"/function-storeplane:v1.2.3")
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
