package planetest

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Eventually waits until a try is without an error, the last of which the test
// fails with.
func Eventually(t *testing.T, within time.Duration, what string, try func() error) {
	t.Helper()
	var last error
	tried := func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, within, true, tried); err != nil {
		t.Fatalf("waited in vain until %s: %v", what, last)
	}
}
