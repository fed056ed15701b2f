// Package planetest gives tests a control plane of their own, and what they need
// to fill it and to wait for what becomes of that.
package planetest

import (
	"errors"
	"testing"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/test/plane"
)

// Start a plane that ends with the test, with the controllers if they are wanted.
// Where there can be none the test is skipped.
func Start(t *testing.T, controllers bool) *plane.Plane {
	t.Helper()
	if testing.Short() {
		t.Skip("It starts a control plane.")
	}
	p, err := plane.Start(t.Context(), t.TempDir(), controllers)
	if errors.Is(err, plane.ErrNoBinaries) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// Installed is a plane with what the provider of the repository at root needs, and
// its administrator's client.
func Installed(t *testing.T, root string, controllers bool) (*plane.Plane, client.Client) {
	t.Helper()
	p := Start(t, controllers)
	admin := Client(t, p.Config(plane.Admin))
	if err := plane.Install(t.Context(), admin, root); err != nil {
		t.Fatal(err)
	}
	return p, admin
}

// Client that knows Kubernetes' own kinds, definitions and AppConfigs.
func Client(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), extv1.AddToScheme(scheme), configv1.SchemeBuilder.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Run a manager until the test ends.
func Run(t *testing.T, mgr manager.Runnable) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- mgr.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Errorf("the manager: %v", err)
		}
	})
}
