package waves

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// Claim is the part of a claim that its upgrade depends on.
type Claim struct {
	APIVersion, Kind, Namespace, Name string

	// UID is that of the claim, and Owner that of the claim that composes it, or "".
	UID, Owner types.UID

	// Release is the one that the claim's pods are of, and Pending the one that waits, or "".
	Release, Pending string

	// Wave is the release that the claim's wave upgrades it to, or "". Mark is how far that is, and
	// Since is when the claim got the mark.
	Wave  string
	Mark  Mark
	Since time.Time

	// Ready is true if the claim is ready, and ReadySince is since when it is or is not.
	Ready      bool
	ReadySince time.Time

	// Phase and Message are those of the claim's status.
	Phase, Message string

	// Generation is that of the claim, and ReadyGeneration the newest one that was ready.
	Generation, ReadyGeneration int64

	// IsRefused is true if the claim itself cannot be composed as it is.
	IsRefused bool

	// IsAside is true if no progress is expected of the claim: it is paused or being deleted.
	IsAside bool
}

// Read reads a claim.
func Read(u *unstructured.Unstructured) Claim {
	a := u.GetAnnotations()
	c := Claim{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(),
		Wave: a[Annotation], Mark: Mark(a[MarkAnnotation]), Generation: u.GetGeneration(),
		IsAside: a[xpmeta.AnnotationKeyReconciliationPaused] == "true" || u.GetDeletionTimestamp() != nil,
	}
	c.Since, _ = time.Parse(time.RFC3339, a[TimeAnnotation])
	if owner := metav1.GetControllerOfNoCopy(u); owner != nil {
		c.Owner = owner.UID
	}
	for _, f := range []struct {
		name string
		into *string
	}{{appsv1.FieldRelease, &c.Release}, {appsv1.FieldPendingRelease, &c.Pending}, {appsv1.FieldPhase, &c.Phase}, {appsv1.FieldMessage, &c.Message}} {
		*f.into, _, _ = unstructured.NestedString(u.Object, "status", f.name)
	}
	c.ReadyGeneration, _, _ = unstructured.NestedInt64(u.Object, "status", appsv1.FieldReadyGeneration)
	conditions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, each := range list {
		f, ok := each.(map[string]any)
		if !ok {
			continue
		}
		switch f["type"] {
		case string(xpv2.TypeReady):
			at, _ := f["lastTransitionTime"].(string)
			c.Ready = f["status"] == "True"
			c.ReadySince, _ = time.Parse(time.RFC3339, at)
		case appsv1.TypeAccepted:
			// Other reasons do not count: settings that cannot be used refuse every claim.
			c.IsRefused = f["status"] == "False" && (f["reason"] == appsv1.ReasonInvalid || f["reason"] == appsv1.ReasonAlreadyExists)
		}
	}
	return c
}

// isWell reports whether the claim is in the state that its team declared, which a release may
// change.
func (c Claim) isWell() bool {
	return c.Ready && !c.isBad() && !c.IsRefused && c.isSettled()
}

// isBad reports whether the claim is Degraded or Failed, which it may be while it is Ready.
func (c Claim) isBad() bool { return c.Phase == appsv1.PhaseDegraded || c.Phase == appsv1.PhaseFailed }

// isSettled reports whether the claim has been ready at its current generation. If not, its team
// has changed it.
func (c Claim) isSettled() bool { return c.Generation == c.ReadyGeneration }

// has reports whether the claim's pods are those of a release.
func (c Claim) has(release string) bool { return c.Release == release && c.Pending == "" }

// needs reports whether the claim is to be upgraded to a release. A claim that has no release and
// was never ready is new, and is composed by the newest release.
func (c Claim) needs(release string) bool {
	return c.Pending == release || c.Release != release && (c.Release != "" || c.ReadyGeneration > 0)
}

// isUnder reports whether the claim's wave upgrades it to a release, and has not finished that.
func (c Claim) isUnder(release string) bool {
	return c.Wave == release && (c.Mark == Admitted || c.Mark == Rolling)
}

// family is a claim that a user has applied, first, and all claims that it composes.
type family []Claim

// families groups claims by family, in a stable order: by a hash of the first claim's UID.
func families(claims []Claim) []family {
	byUID := make(map[types.UID]Claim, len(claims))
	for _, c := range claims {
		byUID[c.UID] = c
	}
	root := func(c Claim) types.UID {
		for range claims {
			owner, ok := byUID[c.Owner]
			if !ok {
				break
			}
			c = owner
		}
		return c.UID
	}
	all := map[types.UID]family{}
	for _, c := range claims {
		uid := root(c)
		if uid == c.UID {
			all[uid] = append(family{c}, all[uid]...)
			continue
		}
		all[uid] = append(all[uid], c)
	}
	out := make([]family, 0, len(all))
	for _, f := range all {
		slices.SortFunc(f[1:], func(a, b Claim) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
		out = append(out, f)
	}
	slices.SortFunc(out, byHash)
	return out
}

func byHash(a, b family) int {
	return cmp.Or(cmp.Compare(hash(a[0].UID), hash(b[0].UID)), cmp.Compare(a[0].UID, b[0].UID))
}

func hash(uid types.UID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	return h.Sum64()
}
