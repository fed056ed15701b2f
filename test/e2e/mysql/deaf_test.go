//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/mysqltest"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// deafens has a replica communicate no more with its group, which it does not notice. It is started again.
func (d *database) deafens(ctx context.Context, _ notes) error {
	replica, pid, err := d.deafen()
	if err != nil {
		return err
	}
	return startedAgain(ctx, replica, pid)
}

// deafensAndLoses loses the primary beside such a replica: the third server has no majority, and waits for it.
func (d *database) deafensAndLoses(ctx context.Context, _ notes) error {
	replica, pid, err := d.deafen()
	if err != nil {
		return err
	}
	old := d.primary()
	if err := d.deletePod(ctx, old); err != nil {
		return err
	}
	if err := startedAgain(ctx, replica, pid); err != nil {
		return err
	}
	return d.replaced(ctx, "Pod", old)
}

// deafen stops the thread of a replica by which it communicates with its group, and returns the server's process ID.
func (d *database) deafen() (*unstructured.Unstructured, int, error) {
	replica := d.with("replica")[0]
	pid, err := harness.Program(replica, container, "mysqld")
	if err != nil {
		return nil, 0, unlessNode(err)
	}
	err = mysqltest.Deafen(pid)
	if errors.Is(err, os.ErrPermission) {
		err = unlessNode(harness.ErrNotNode)
	}
	return replica, pid, err
}

// startedAgain waits until a server has ended.
func startedAgain(ctx context.Context, pod *unstructured.Unstructured, pid int) error {
	return harness.Await(ctx, settled, "MySQL of "+pod.GetName()+" to be started again", func(context.Context) (bool, error) {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		return os.IsNotExist(err), nil
	})
}
