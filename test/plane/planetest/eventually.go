package planetest

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Eventually calls try until it returns nil. After the timeout within it fails the test with the
// last error.
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
