// Package planetest starts control planes for tests, and helps tests to create objects in them
// and to wait for results.
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

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/test/plane"
)

// Start starts a plane that is stopped when the test ends, with the controllers of Kubernetes if
// controllers is set. It skips the test in short mode and if the programs of the control plane
// are missing.
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

// Installed starts a plane with the definitions and rights of the provider of the repository at
// root, and returns it with an administrator's client.
func Installed(t *testing.T, root string, controllers bool) (*plane.Plane, client.Client) {
	t.Helper()
	p := Start(t, controllers)
	admin := Client(t, p.Config(plane.Admin))
	if err := plane.Install(t.Context(), admin, root); err != nil {
		t.Fatal(err)
	}
	return p, admin
}

// Client returns a client for the built-in kinds of Kubernetes, CustomResourceDefinitions and
// AppConfigs.
func Client(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), extv1.AddToScheme(scheme), backupv1.SchemeBuilder.AddToScheme(scheme), configv1.SchemeBuilder.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Run runs a manager until the test ends.
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
