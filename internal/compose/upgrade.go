package compose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/fieldowner"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/waves"
)

const (
	// UpgradeAnnotation of a claim names the release that it is to be upgraded to now, as
	// status.pendingRelease has it. Claims that a claim composes inherit it.
	UpgradeAnnotation = "storeplane.example.com/upgrade-to"

	// PodsAnnotation holds a hash of the pods that an object was declared with last. What the
	// API server makes of a declaration is no other one.
	PodsAnnotation = "storeplane.example.com/pods"
)

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

	// Waves tells whether claims are upgraded in waves: this one not before its wave has begun, by
	// annotation waves.Annotation.
	Waves bool

	// Urgent tells whether changes from another release on wait for nothing. It may be nil.
	Urgent func(from string) bool
}

// Window of time that opens again and again.
type Window interface {
	// Open tells whether it is at a moment.
	Open(now time.Time) bool

	// Next moment in which it opens.
	Next(now time.Time) time.Time

	// Length is for how long it is open.
	Length() time.Duration

	// String names it, for people.
	String() string
}

// longestSpread is within what time at most the claims whose window opens together begin.
const longestSpread = 30 * time.Minute

// delay of a claim in its window: claims that wait for the same one do not all begin together.
func (c *Claim) delay(w Window) time.Duration {
	return spread(c.UID(), max(time.Second, min(w.Length()/2, longestSpread)))
}

// inputs of the claim: a digest of its spec, without what Crossplane and autoscalers write there
// and without the window itself, whose edit is not one of the application; one of what else users
// change; and one of who wrote the spec when. A release that gives a field a default changes the
// first, without a write.
func (c *Claim) inputs(u *Upgrade) string {
	spec := shallow(c.composite.GetFields()["spec"].GetStructValue())
	for _, field := range []string{"crossplane", "maintenance", "replicas"} {
		delete(spec.GetFields(), field)
	}
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

	// from is the release that the claim has been composed by, or "".
	from string

	// was and inputs are those that the claim became ready with last, and those that it has.
	was, inputs string

	// holds says that changes of pods wait, and held are the objects that they are of.
	holds bool
	held  []string

	// unfinished says that in this pass something is kept as it is that the release changes, for
	// another reason than the window.
	unfinished bool
}

// upgradeOf a claim: it is held where another release has composed it, with the same inputs, and
// nothing admits this one.
func upgradeOf(c *Claim, u *Upgrade) *upgrade {
	if u == nil {
		return &upgrade{}
	}
	out := &upgrade{
		Upgrade: u, inputs: c.inputs(u),
		from: c.status("release").GetStringValue(), was: c.status("inputs").GetStringValue(),
	}
	isNew := c.composed == 0 && len(c.adopted) == 0
	out.holds = !isNew && out.from != u.Release && !c.isAdmitted(u, out.from) && !isEdit(out.was, out.inputs)
	return out
}

// isAdmitted tells whether changes of the release are applied now. Those that have begun go on.
func (c *Claim) isAdmitted(u *Upgrade, from string) bool {
	now := c.Now()
	switch {
	case u.Window == nil && !u.Waves, now.IsZero(), c.Annotation(UpgradeAnnotation) == u.Release:
		return true
	case u.Urgent != nil && u.Urgent(from):
		return true
	case c.condition(ConditionUpgraded)["reason"].GetStringValue() == appsv1.ReasonUpgrading && c.status("pendingRelease").GetStringValue() == u.Release:
		return true
	case !c.isInWave(u):
		return false
	case u.Window == nil:
		return true
	}
	return u.Window.Open(now) && u.Window.Open(now.Add(-c.delay(u.Window)))
}

// isInWave tells whether the claim's wave has begun, or there are none.
func (c *Claim) isInWave(u *Upgrade) bool {
	return !u.Waves || c.Annotation(waves.Annotation) == u.Release
}

// begins is in what time the window of the changes of the release opens.
func (c *Claim) begins(u *Upgrade) time.Duration {
	delay := c.delay(u.Window)
	return u.Window.Next(c.Now().Add(-delay)).Add(delay).Sub(c.Now())
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
// all else as it is declared. Where no pod is ready there is nothing to protect: the release may
// be the repair. Nor is what was edited by hand to stay for as long as it waits. It returns whether it does, and the hash of the pods that the object is declared
// with, or "" for one without pods.
func (d *Decision) hold(want, observed *structpb.Struct) (held bool, pods string) {
	at := podsAt(want)
	if at == nil {
		return false, ""
	}
	wants := valueAt(want, at)
	pods = digestOf(wants, at)
	if !d.upgrade.holds || observed == nil || isDown(observed) || d.isEditedByHand(observed, want, at) {
		return false, pods
	}
	has := valueAt(d.claim.keep(observed), at)
	before := annotation(observed, PodsAnnotation)
	if has == nil || before == pods || before == "" && sameButDefaults(has, wants) {
		return false, pods
	}
	if len(at) == 1 {
		// When a claim below is upgraded is not held, nor how many pods it has.
		for _, field := range unheld {
			has = withField(has, field, wants.GetStructValue().GetFields()[field])
		}
	}
	setAt(want, at, has)
	d.upgrade.held = append(d.upgrade.held, kindAndName(want))
	return true, before
}

// unheld are the fields of a claim below that are as they are declared.
var unheld = []string{"maintenance", "replicas"}

// digestOf pods as they are declared, without what is not held.
func digestOf(v *structpb.Value, at []string) string {
	s := v.GetStructValue()
	if len(at) == 1 {
		s = shallow(s)
		for _, field := range unheld {
			delete(s.Fields, field)
		}
	}
	return digest(s)
}

// isDown tells whether a workload has no pod that is ready.
func isDown(observed *structpb.Struct) bool {
	return health.GroupKind(observed).Group == "apps" && observed.GetFields()["status"].GetStructValue().GetFields()["readyReplicas"].GetNumberValue() == 0
}

// isEditedByHand tells whether another than Crossplane has changed what is declared of the pods of an
// object, which would be reverted if no release waited: with managed fields a change takes a field
// away from Crossplane. What others have added, and what they have set to the same value, stays in any
// case.
func (d *Decision) isEditedByHand(observed, want *structpb.Struct, at []string) bool {
	for manager := range fieldowner.Taken(observed, want, d.claim.manager(), at) {
		if !strings.HasPrefix(manager, fieldowner.ConfigPrefix) {
			return true
		}
	}
	return false
}

// defaulted are the fields of lists and structs that the API server owns whole, which it fills in.
var defaulted = map[string]bool{"apiVersion": true, "divisor": true}

// sameButDefaults tells whether what is observed of pods is what is declared, of an object that
// an older release has declared, which said no hash of it.
func sameButDefaults(has, wants *structpb.Value) bool {
	switch w := wants.GetKind().(type) {
	case *structpb.Value_StructValue:
		h, ok := has.GetKind().(*structpb.Value_StructValue)
		if !ok {
			return false
		}
		for k, v := range h.StructValue.GetFields() {
			want, ok := w.StructValue.GetFields()[k]
			if !ok && defaulted[k] {
				continue
			}
			if !ok || !sameButDefaults(v, want) {
				return false
			}
		}
		for k := range w.StructValue.GetFields() {
			if _, ok := h.StructValue.GetFields()[k]; !ok {
				return false
			}
		}
		return true
	case *structpb.Value_ListValue:
		h := has.GetListValue().GetValues()
		if len(h) != len(w.ListValue.GetValues()) {
			return false
		}
		for i, v := range w.ListValue.GetValues() {
			if !sameButDefaults(h[i], v) {
				return false
			}
		}
		return true
	default:
		return has.AsInterface() == wants.AsInterface()
	}
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

// servesPods are the kinds of objects that pods refer to: those of the release before may.
var servesPods = map[string]bool{
	"ConfigMap": true, "Secret": true, "ServiceAccount": true, "Role": true, "RoleBinding": true, "Service": true, "PersistentVolumeClaim": true,
}

// keepUndeclared keeps what a release does not declare any more while its changes wait: pods, and
// what these refer to.
func (d *Decision) keepUndeclared(names []string) {
	if !d.upgrade.holds {
		return
	}
	slices.Sort(names)
	for _, n := range names {
		if o := d.claim.Observed(n); podsAt(o) != nil {
			d.Apply[n] = d.claim.keep(o)
			d.upgrade.held = append(d.upgrade.held, kindAndName(o))
		}
	}
	if !d.upgrade.waits() {
		return
	}
	for _, n := range names {
		if o := d.claim.Observed(n); servesPods[o.GetFields()["kind"].GetStringValue()] {
			d.Apply[n] = d.claim.keep(o)
		}
	}
}

// hasUndeclaredPods tells whether objects with pods are observed that the release does not
// declare.
func (d *Decision) hasUndeclaredPods(declared map[string]bool) bool {
	for name, r := range d.claim.observed {
		if !declared[name] && podsAt(r.GetResource()) != nil {
			return true
		}
	}
	return false
}

// wouldAddPods tells whether a component that does not exist has pods: the release may have given
// it another name, and both would run beside each other. It is healthy until its time comes.
func (d *Decision) wouldAddPods(c *Component) bool {
	if err := d.make(c); err != nil {
		return false // It is reported where the object is made.
	}
	if group := groupKind(c).Group; group != "apps" && !isClaimGroup[group] {
		return false
	}
	d.Health[c.Name] = health.Status{State: health.Healthy}
	d.upgrade.held = append(d.upgrade.held, groupKind(c).Kind+" "+c.Object.GetName())
	return true
}

// waits tells whether a change of pods waits for its time.
func (u *upgrade) waits() bool { return len(u.held) > 0 }

// report it in a claim's status. A release that changes no pods has nothing to wait for. Inputs
// are those of a claim that is ready with them: an edit is one until it is done.
func (u *upgrade) report(s *appsv1.CommonStatus, c *Claim, ready bool) {
	if u.Upgrade == nil {
		return
	}
	if s.Inputs = u.was; ready || u.was == "" {
		s.Inputs = u.inputs
	}
	s.Release = u.Release
	if u.waits() || u.unfinished && u.from != u.Release && c.composed > 0 {
		s.Release, s.PendingRelease = u.from, u.Release
	}
}

// condition that says what waits, and for when.
func (u *upgrade) condition(c *Claim) Condition {
	switch {
	case u.waits():
		reason, waitsFor := appsv1.ReasonAwaitingMaintenance, ""
		if !c.isInWave(u.Upgrade) {
			reason, waitsFor = appsv1.ReasonAwaitingWave, "its wave (storeplane upgrade lists the waves)"
		}
		if u.Window != nil {
			if waitsFor != "" {
				waitsFor += ", and then for "
			}
			waitsFor += "the maintenance window, " + u.Window.String()
		}
		return Condition{Type: ConditionUpgraded, Reason: reason, Message: fmt.Sprintf(
			"Release %s changes the pods of %s: it waits for %s. To have it now: kubectl annotate -n %s %s %s %s=%s --overwrite",
			u.Release, strings.Join(u.held, ", "), waitsFor, c.Namespace(), strings.ToLower(c.Kind()), c.Name(), UpgradeAnnotation, u.Release)}
	case u.unfinished && u.from != u.Release && c.composed > 0:
		return Condition{Type: ConditionUpgraded, Reason: appsv1.ReasonUpgrading, Message: "Release " + u.Release + " is being applied"}
	}
	return Condition{Type: ConditionUpgraded, True: true, Reason: appsv1.ReasonUpgraded}
}
