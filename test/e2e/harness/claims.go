package harness

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NeverFalse returns an error for each claim of the namespace that ever reported a condition to be
// False.
func (w *World) NeverFalse(condition string) error {
	var errs []error
	for _, k := range w.Keys() {
		if k.Kind != "EcommercePlatform" && k.Kind != "DatabaseCluster" && k.Kind != "WebApp" {
			continue
		}
		for _, v := range w.History(k.Kind, k.Name) {
			if c := ClaimOf(v.Object).Condition(condition); c.Status == metav1.ConditionFalse {
				errs = append(errs, fmt.Errorf("%s was %s False: %s: %s", k, condition, c.Reason, c.Message))
				break
			}
		}
	}
	return errors.Join(errs...)
}
