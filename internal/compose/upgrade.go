package compose

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/health"
)

// UpgradeAnnotation of a claim names the release that it is to be upgraded to now, as
// status.pendingRelease has it. Claims that a claim composes inherit it.
const UpgradeAnnotation = "storeplane.example.com/upgrade-to"

// ConditionUpgraded is False while changes of a release wait for their time.
const ConditionUpgraded = "Upgraded"

// Upgrade says when changes of pods are applied that no user has asked for: those of another
// release of Storeplane, or of the installation's settings. Such a change is known by this: the
// claim has been composed by another release, and its inputs are the same.
type Upgrade struct {
	// Release of Storeplane with those settings that change pods, by a name.
	Release string

	// Inputs are what users change and pods carry beside the claim's spec: names of bundles of
	// configuration, digests of passwords.
	Inputs []string

	// Window in which changes are applied, or nil where they are at once.
	Window Window

	// Urgent changes, and all changes where they are only looked at, wait for nothing.
	Urgent bool
}

// Window of time that opens again and again.
type Window interface {
	// Open tells whether it is at a moment.
	Open(now time.Time) bool

	// Next moment in which it opens.
	Next(now time.Time) time.Time

	// String names it, for people.
	String() string
}

// inputs of the claim: a digest of its spec, without what Crossplane keeps there and without the
// window itself, whose edit is not one of the application; and one of who wrote it when. A release
// that gives a field a default changes the first, and nobody has written anything.
func (c *Claim) inputs(u *Upgrade) string {
	spec := shallow(c.composite.GetFields()["spec"].GetStructValue())
	delete(spec.GetFields(), "crossplane")
	delete(spec.GetFields(), "maintenance")
	d := fnv{sum: offset64}
	d.object(spec)
	out := strconv.FormatUint(d.sum, 16)
	d.sum = offset64
	for _, in := range u.Inputs {
		d.text(in)
	}
	out += "-" + strconv.FormatUint(d.sum, 16)
	if writes := c.writes(); writes != "" {
		out += "-" + writes
	}
	return out
}

// writes is a digest of when each has written to the claim's spec last, by managed fields, or ""
// where these say nothing. What Crossplane keeps there is not counted.
func (c *Claim) writes() string {
	d := fnv{sum: offset64}
	for _, v := range c.meta("managedFields").GetListValue().GetValues() {
		entry := v.GetStructValue().GetFields()
		for field := range entry["fieldsV1"].GetStructValue().GetFields()["f:spec"].GetStructValue().GetFields() {
			if field != "." && field != "f:crossplane" {
				d.text(entry["manager"].GetStringValue())
				d.text(entry["time"].GetStringValue())
				break
			}
		}
	}
	if d.sum == offset64 {
		return ""
	}
	return strconv.FormatUint(d.sum, 16)
}

// isEdit tells whether a user has changed something between two inputs of a claim.
func isEdit(was, now string) bool {
	before, after := strings.Split(was, "-"), strings.Split(now, "-")
	if was == "" || len(before) < 2 || len(after) < 2 {
		return false
	}
	written := len(before) < 3 || len(after) < 3 || before[2] != after[2]
	return before[1] != after[1] || before[0] != after[0] && written
}

// upgrade of a claim in this pass.
type upgrade struct {
	*Upgrade

	// release that the claim is composed by, and inputs with which.
	release, inputs string

	// holds says that changes of pods wait, and held are the objects that they are of.
	holds bool
	held  []string
}

// upgradeOf a claim: it is held where another release has composed it, with the same inputs, and
// nothing admits this one.
func upgradeOf(c *Claim, u *Upgrade) *upgrade {
	if u == nil {
		return &upgrade{}
	}
	out := &upgrade{Upgrade: u, release: u.Release, inputs: c.inputs(u)}
	was, inputs := c.status("release").GetStringValue(), c.status("inputs").GetStringValue()
	switch {
	case c.composed == 0, was == u.Release, c.isAdmitted(u), isEdit(inputs, out.inputs):
		return out
	}
	out.release, out.holds = was, true
	return out
}

// isAdmitted tells whether changes of the release are applied now.
func (c *Claim) isAdmitted(u *Upgrade) bool {
	now := c.Now()
	return u.Window == nil || u.Urgent || now.IsZero() || u.Window.Open(now) || c.Annotation(UpgradeAnnotation) == u.Release
}

// podsAt is where an object that has pods, or composes some, says of which kind, or nil. Jobs are
// not among them: what they run has ended, or runs to its end.
func podsAt(s *structpb.Struct) []string {
	switch gk := health.GroupKind(s); {
	case gk.Group == "apps":
		return []string{"spec", "template"}
	case isClaimGroup[gk.Group]:
		return []string{"spec"}
	}
	return nil
}

// isClaimGroup are the groups of claims.
var isClaimGroup = map[string]bool{appsv1.GroupVersion.Group: true, "platform.example.com": true}

// hold the pods of an object as they are: what is to be applied has those that are observed, and
// all else as it is declared.
func (d *Decision) hold(want, observed *structpb.Struct) {
	at := podsAt(want)
	if !d.upgrade.holds || at == nil || observed == nil {
		return
	}
	kept := d.claim.keep(observed)
	has, wants := valueAt(kept, at), valueAt(want, at)
	if has == nil {
		return
	}
	if len(at) == 1 {
		// When a claim below is upgraded is not held.
		has = withField(has, "maintenance", wants.GetStructValue().GetFields()["maintenance"])
	}
	if proto.Equal(has, wants) {
		return
	}
	setAt(want, at, has)
	d.upgrade.held = append(d.upgrade.held, kindAndName(want))
}

func valueAt(s *structpb.Struct, path []string) *structpb.Value {
	v := structpb.NewStructValue(s)
	for _, f := range path {
		v = v.GetStructValue().GetFields()[f]
	}
	return v
}

// setAt a path whose fields but the last exist.
func setAt(s *structpb.Struct, path []string, v *structpb.Value) {
	for _, f := range path[:len(path)-1] {
		s = s.GetFields()[f].GetStructValue()
	}
	s.Fields[path[len(path)-1]] = v
}

func withField(v *structpb.Value, field string, value *structpb.Value) *structpb.Value {
	out := shallow(v.GetStructValue())
	if delete(out.Fields, field); value != nil {
		out.Fields[field] = value
	}
	return structpb.NewStructValue(out)
}

func kindAndName(s *structpb.Struct) string {
	return s.GetFields()["kind"].GetStringValue() + " " + s.GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue()
}

// waits tells whether a change of pods waits for its time.
func (u *upgrade) waits() bool { return len(u.held) > 0 }

// report it in a claim's status. A release that changes no pods has nothing to wait for.
func (u *upgrade) report(s *appsv1.CommonStatus) {
	if u.Upgrade == nil {
		return
	}
	s.Inputs = u.inputs
	if s.Release = u.Release; u.waits() {
		s.Release, s.PendingRelease = u.release, u.Release
	}
}

// condition that says what waits, and for when.
func (u *upgrade) condition(c *Claim) Condition {
	if !u.waits() {
		return Condition{Type: ConditionUpgraded, True: true, Reason: appsv1.ReasonUpgraded}
	}
	return Condition{Type: ConditionUpgraded, Reason: appsv1.ReasonAwaitingMaintenance, Message: fmt.Sprintf(
		"Release %s changes the pods of %s: it waits for the maintenance window, %s. To have it now: kubectl annotate %s %s %s=%s",
		u.Release, strings.Join(u.held, ", "), u.Window, strings.ToLower(c.Kind()), c.Name(), UpgradeAnnotation, u.Release)}
}
