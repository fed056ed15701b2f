package harness

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// turn is the replacement of one pod: leave is the version in which its deletion began, and come
// the one in which its successor became ready.
type turn struct {
	pod         string
	leave, come Version
}

// RolledInOrder returns an error unless pods were replaced one at a time, each successor ready before the
// next pod was deleted, and that of the primary as the last one.
func (w *World) RolledInOrder(old []*unstructured.Unstructured, primary string) error {
	var turns []turn
	for _, p := range old {
		t, err := w.turnOf(p)
		if err != nil {
			return err
		}
		turns = append(turns, t)
	}
	slices.SortFunc(turns, func(a, b turn) int { return compareVersions(a.leave, b.leave) })
	var errs []error
	for i, t := range turns[1:] {
		if compareVersions(turns[i].come, t.leave) > 0 {
			errs = append(errs, fmt.Errorf("pod %s was replaced before the new %s was ready", t.pod, turns[i].pod))
		}
	}
	if last := turns[len(turns)-1].pod; last != primary {
		errs = append(errs, fmt.Errorf("primary was %s, and the last pod that was replaced is %s", primary, last))
	}
	return errors.Join(errs...)
}

func (w *World) turnOf(old *unstructured.Unstructured) (turn, error) {
	t := turn{pod: old.GetName()}
	for _, v := range w.History("Pod", old.GetName()) {
		mine := v.Object.GetUID() == old.GetUID()
		switch {
		case mine && t.leave.Object == nil && (v.Deleted || v.Object.GetDeletionTimestamp() != nil):
			t.leave = v
		case !mine && t.leave.Object != nil && t.come.Object == nil && ClaimOf(v.Object).Is("Ready"):
			t.come = v
		}
	}
	if t.leave.Object == nil || t.come.Object == nil {
		return t, fmt.Errorf("pod %s was not replaced by one that is ready", t.pod)
	}
	if _, err := resourceversion.CompareResourceVersion(t.leave.Revision(), t.come.Revision()); err != nil {
		return t, fmt.Errorf("cannot compare when pod %s left and its successor was ready: %w", t.pod, err)
	}
	return t, nil
}

// compareVersions compares the revisions of two versions, which turnOf has found to be comparable.
func compareVersions(a, b Version) int {
	c, _ := resourceversion.CompareResourceVersion(a.Revision(), b.Revision())
	return c
}
