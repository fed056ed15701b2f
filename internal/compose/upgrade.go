package compose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
	"github.com/storeplane/storeplane/internal/fieldowner"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/waves"
)

const (
	// UpgradeAnnotation of a claim names the release, as in status.pendingRelease, to which the
	// claim is upgraded at once. Claims that the claim composes inherit it.
	UpgradeAnnotation = "storeplane.example.com/upgrade-to"

	// PodsAnnotation holds a hash of the pods that an object was last declared with. It is of the
	// declaration, so defaults that the API server fills in do not change it.
	PodsAnnotation = "storeplane.example.com/pods"
)

// Upgrade decides when changes of pods are applied that no user has made: those of another release
// of Storeplane, or of the installation's settings. A change counts as such if another release has
// composed the claim before, and the claim's inputs are the same.
type Upgrade struct {
	// Release names the release of Storeplane together with the settings that change pods.
	Release string

	// Inputs are what users change and pods contain in addition to the claim's spec: names of
	// configuration bundles, digests of passwords.
	Inputs []string

	// Window is the time in which changes are applied, or nil if they are applied at once.
	Window Window

	// Waves is true where claims are upgraded in waves: this one not before its wave has begun,
	// which annotation waves.Annotation shows.
	Waves bool

	// Urgent reports whether changes since the release from wait for nothing. It may be nil.
	Urgent func(from string) bool
}

// Window is a recurring window of time.
type Window interface {
	// Open reports whether the window is open at a time.
	Open(now time.Time) bool

	// Next returns the next time after now at which the window opens.
	Next(now time.Time) time.Time

	// Length returns for how long the window is open.
	Length() time.Duration

	// String describes the window, for messages.
	String() string
}

// longestSpread is the longest time over which the upgrades of claims are spread whose windows open
// together.
const longestSpread = 30 * time.Minute

// delay returns how long after the opening of its window the claim begins: claims that wait for the
// same window do not all begin together.
func (c *Claim) delay(w Window) time.Duration {
	return spread(c.UID(), max(time.Second, min(w.Length()/2, longestSpread)))
}

// inputs returns digests of the claim's inputs, separated by hyphens: of its spec, without what
// Crossplane and autoscalers write there and without the window itself, an edit of which is no edit
// of the application; of what else users change; and of when which manager wrote the spec. A
// release that gives a field a default changes the first digest, without a write.
func (c *Claim) inputs(u *Upgrade) string {
	out := c.specDigest(Unheld...)
	d := fnv{sum: offset64}
	for _, in := range u.Inputs {
		d.text(in)
	}
	out += "-" + strconv.FormatUint(d.sum, 16)
	if writes := c.writes(); writes != "" {
		out += "-" + writes
	}
	return out
}

// specDigest returns a digest of the claim's spec without some fields, and without what Crossplane
// writes there.
func (c *Claim) specDigest(without ...string) string {
	spec := shallow(c.composite.GetFields()["spec"].GetStructValue())
	delete(spec.GetFields(), "crossplane")
	for _, field := range without {
		delete(spec.GetFields(), field)
	}
	d := fnv{sum: offset64}
	d.object(spec)
	return strconv.FormatUint(d.sum, 16)
}

// writes returns a digest of when each manager last wrote to the claim's spec, by managed fields,
// or "" where these contain nothing of the spec. What Crossplane writes to spec.crossplane does not
// count.
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

// isEdit reports whether a user has changed something between two inputs of a claim.
func isEdit(was, now string) bool {
	before, after := strings.Split(was, "-"), strings.Split(now, "-")
	if was == "" || len(before) < 2 || len(after) < 2 {
		return false
	}
	written := len(before) < 3 || len(after) < 3 || before[2] != after[2]
	return before[1] != after[1] || before[0] != after[0] && written
}

// upgrade is the state of a claim's upgrade in this pass.
type upgrade struct {
	*Upgrade

	// from is the release that the claim has been composed by, or "".
	from string

	// was are the inputs with which the claim last became ready, and inputs are the current ones.
	was, inputs string

	// holds is true where changes of pods wait. held are the objects whose pods change, as kind and
	// name.
	holds bool
	held  []string

	// unfinished is true where this pass keeps something as it is that the release changes, for
	// another reason than the window.
	unfinished bool
}

// upgradeOf returns the state of a claim's upgrade. Changes wait where another release has composed
// the claim with the same inputs, and nothing admits this release.
func upgradeOf(c *Claim, u *Upgrade) *upgrade {
	if u == nil {
		return &upgrade{}
	}
	out := &upgrade{
		Upgrade: u, inputs: c.inputs(u),
		from: c.status(appsv1.FieldRelease).GetStringValue(), was: c.status("inputs").GetStringValue(),
	}
	isNew := c.composed == 0 && len(c.adopted) == 0
	out.holds = !isNew && out.from != u.Release && !c.isAdmitted(u, out.from) && !isEdit(out.was, out.inputs)
	return out
}

// isAdmitted reports whether changes of the release are applied now. An upgrade that has begun
// continues.
func (c *Claim) isAdmitted(u *Upgrade, from string) bool {
	now := c.Now()
	switch {
	case u.Window == nil && !u.Waves, now.IsZero(), c.Annotation(UpgradeAnnotation) == u.Release:
		return true
	case u.Urgent != nil && u.Urgent(from):
		return true
	case c.condition(appsv1.TypeUpgraded)["reason"].GetStringValue() == appsv1.ReasonUpgrading && c.status(appsv1.FieldPendingRelease).GetStringValue() == u.Release:
		return true
	case !c.isInWave(u):
		return false
	case u.Window == nil:
		return true
	}
	return u.Window.Open(now) && u.Window.Open(now.Add(-c.delay(u.Window)))
}

// mayWait reports whether changes of a release may have to wait.
func (u *upgrade) mayWait() bool { return u.Upgrade != nil && (u.Window != nil || u.Waves) }

// isInWave reports whether the claim's wave has begun, or there are no waves.
func (c *Claim) isInWave(u *Upgrade) bool {
	return !u.Waves || c.Annotation(waves.Annotation) == u.Release
}

// begins returns the time until the changes of the release are applied in the window.
func (c *Claim) begins(u *Upgrade) time.Duration {
	delay := c.delay(u.Window)
	return u.Window.Next(c.Now().Add(-delay)).Add(delay).Sub(c.Now())
}

// podsAt returns the path of an object at which its pods are declared: the template of a workload
// or the spec of a claim. It is nil for other kinds. Jobs have none: their pods have ended, or run
// to their end.
func podsAt(s *structpb.Struct) []string {
	switch gk := health.GroupKind(s); {
	case gk.Group == "apps":
		return []string{"spec", "template"}
	case isClaimGroup[gk.Group]:
		return []string{"spec"}
	}
	return nil
}

// isClaimGroup contains the API groups of claims.
var isClaimGroup = map[string]bool{appsv1.GroupVersion.Group: true, platformv1.GroupVersion.Group: true}

// hold keeps the pods of an object as they are observed, and leaves the rest of want as it is
// declared. It does not keep them where no pod is ready: there is nothing to protect, and the
// release may be the repair. Nor does it where they were edited by hand: the edit must not stay for
// as long as the release waits. It returns whether it keeps the pods, and the value for
// PodsAnnotation: the hash of the declared pods, or the object's previous value where they are
// kept. That is "" for an object without pods.
func (d *Decision) hold(want, observed *structpb.Struct) (held bool, pods string) {
	at := podsAt(want)
	if at == nil {
		return false, ""
	}
	wants := valueAt(want, at)
	pods = digestOf(wants, at)
	if !d.upgrade.holds || observed == nil || isDown(observed) {
		return false, pods
	}
	has := valueAt(d.claim.keep(observed), at)
	before := annotation(observed, PodsAnnotation)
	if !isWhole(has, at, before) && d.isEditedByHand(observed, want, at) {
		return false, pods
	}
	if has == nil || before == pods || before == "" && sameButDefaults(has, wants) {
		return false, pods
	}
	if len(at) == 1 {
		// The time at which a nested claim is upgraded is not held, nor is its number of pods.
		for _, field := range Unheld {
			has = withField(has, field, wants.GetStructValue().GetFields()[field])
		}
	}
	setAt(want, at, has)
	d.upgrade.held = append(d.upgrade.held, kindAndName(want))
	return true, before
}

// Unheld are the fields of a claim's spec an edit of which is no edit of its pods. Those of a nested
// claim are applied as declared while its pods wait.
var Unheld = []string{"maintenance", "replicas"}

// digestOf returns a hash of the pods as they are declared, without fields that are not held.
func digestOf(v *structpb.Value, at []string) string {
	s := v.GetStructValue()
	if len(at) == 1 {
		s = shallow(s)
		for _, field := range Unheld {
			delete(s.GetFields(), field)
		}
	}
	return digest(s)
}

// isWhole reports whether all that was declared of an object's pods still belongs to Crossplane, by
// the hash of that declaration. Then no other client has changed any of it: what others have set is
// not declared, or is by this release for the first time. The API server may have filled in
// defaults.
func isWhole(has *structpb.Value, at []string, declared string) bool {
	return has != nil && declared != "" && (digestOf(has, at) == declared || digestOf(withoutDefaults(has), at) == declared)
}

// withoutDefaults returns a value without the fields that the API server fills in.
func withoutDefaults(v *structpb.Value) *structpb.Value {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		out := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(k.StructValue.GetFields()))}
		for name, f := range k.StructValue.GetFields() {
			if !defaulted[name] {
				out.Fields[name] = withoutDefaults(f)
			}
		}
		return structpb.NewStructValue(out)
	case *structpb.Value_ListValue:
		out := &structpb.ListValue{Values: make([]*structpb.Value, 0, len(k.ListValue.GetValues()))}
		for _, e := range k.ListValue.GetValues() {
			out.Values = append(out.Values, withoutDefaults(e))
		}
		return structpb.NewListValue(out)
	default:
		return v
	}
}

// isDown reports whether a workload has no pod that is ready.
func isDown(observed *structpb.Struct) bool {
	return health.GroupKind(observed).Group == "apps" && observed.GetFields()["status"].GetStructValue().GetFields()["readyReplicas"].GetNumberValue() == 0
}

// isEditedByHand reports whether a client other than Crossplane has changed what is declared of an
// object's pods, so that the change would be reverted if no release waited: such a change takes the
// field away from Crossplane in the managed fields. Fields that others have added, or have set to
// the same value, stay in any case. Changes by AppConfigs do not count.
func (d *Decision) isEditedByHand(observed, want *structpb.Struct, at []string) bool {
	for manager := range fieldowner.Taken(observed, want, d.claim.manager(), at) {
		if !strings.HasPrefix(manager, fieldowner.ConfigPrefix) {
			return true
		}
	}
	return false
}

// defaulted are the fields that the API server fills in within lists and structs that are owned as
// a whole.
var defaulted = map[string]bool{"apiVersion": true, "divisor": true}

// sameButDefaults reports whether observed pods are as declared, except for defaults. It is for
// objects of an older release, which carry no hash of their pods.
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

// setAt sets the value at a path of which all fields but the last exist.
func setAt(s *structpb.Struct, path []string, v *structpb.Value) {
	for _, f := range path[:len(path)-1] {
		s = s.GetFields()[f].GetStructValue()
	}
	s.Fields[path[len(path)-1]] = v
}

func withField(v *structpb.Value, field string, value *structpb.Value) *structpb.Value {
	out := shallow(v.GetStructValue())
	if delete(out.GetFields(), field); value != nil {
		out.Fields[field] = value
	}
	return structpb.NewStructValue(out)
}

func kindAndName(s *structpb.Struct) string {
	return s.GetFields()["kind"].GetStringValue() + " " + s.GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue()
}

// servesPods are the kinds of objects that pods refer to. Pods of the release before may still
// refer to them.
var servesPods = map[string]bool{
	"ConfigMap": true, "Secret": true, "ServiceAccount": true, "Role": true, "RoleBinding": true, "Service": true, "PersistentVolumeClaim": true,
}

// keepUndeclared keeps objects that a release no longer declares while its changes wait: those with
// pods, and those that pods refer to.
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

// hasUndeclaredPods reports whether objects with pods are observed that the release does not
// declare.
func (d *Decision) hasUndeclaredPods(declared map[string]bool) bool {
	for name, r := range d.claim.observed {
		if !declared[name] && podsAt(r.GetResource()) != nil {
			return true
		}
	}
	return false
}

// wouldAddPods reports whether a component that does not exist has pods. The release may have
// renamed it, and pods of both names would run at the same time. The component counts as healthy
// until its time comes.
func (d *Decision) wouldAddPods(c *Component) bool {
	if err := d.make(c); err != nil {
		return false // The component is left to gate.
	}
	if group := groupKind(c).Group; group != "apps" && !isClaimGroup[group] {
		return false
	}
	d.Health[c.Name] = health.Status{State: health.Healthy}
	d.upgrade.held = append(d.upgrade.held, groupKind(c).Kind+" "+c.Object.GetName())
	return true
}

// waits reports whether a change of pods waits for its time.
func (u *upgrade) waits() bool { return len(u.held) > 0 }

// report sets the release and the inputs in a claim's status. A release that changes no pods has
// nothing to wait for. The inputs are updated once the claim is ready with them: until then an edit
// still counts as one.
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

// condition returns the condition Upgraded, with what waits, and for what.
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
		return Condition{Type: appsv1.TypeUpgraded, Reason: reason, Message: fmt.Sprintf(
			"Release %s changes the pods of %s: it waits for %s. To have it now: kubectl annotate -n %s %s %s %s=%s --overwrite",
			u.Release, strings.Join(u.held, ", "), waitsFor, c.Namespace(), strings.ToLower(c.Kind()), c.Name(), UpgradeAnnotation, u.Release)}
	case u.unfinished && u.from != u.Release && c.composed > 0:
		return Condition{Type: appsv1.TypeUpgraded, Reason: appsv1.ReasonUpgrading, Message: "Release " + u.Release + " is being applied"}
	}
	return Condition{Type: appsv1.TypeUpgraded, True: true, Reason: appsv1.ReasonUpgraded}
}
