package controller

import (
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestLimited: thousands of requests that wait for one controller do not delay another one.
func TestLimited(t *testing.T) {
	c := &Controllers{MaxRate: 10}
	pauses, restores := c.limited(controller.Options{}), c.limited(controller.Options{})
	request := func(name int) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Name: time.Duration(name).String()}}
	}
	var last time.Duration
	for i := range 1000 {
		last = pauses.GlobalRateLimiter.When("pause/" + request(i).String())
	}
	if last < time.Minute {
		t.Fatalf("want the thousandth to wait for its turn, got %v", last)
	}
	if wait := restores.GlobalRateLimiter.When("restore/" + request(0).String()); wait > 0 {
		t.Errorf("want the first of another controller to begin at once, got %v", wait)
	}
}
