package plan

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/fieldowner"
	"github.com/storeplane/storeplane/internal/guardrails"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/render"
	"github.com/storeplane/storeplane/internal/waves"
	"github.com/storeplane/storeplane/internal/xrd"
)

// A Planner plans edits of claims.
type Planner struct {
	// Schemas are those of the kinds of claims.
	Schemas xrd.Schemas

	// Compositions are files, each with the Composition of one kind.
	Compositions fs.FS

	// Function creates a function that composes every kind of claim, from its source of passwords
	// and time, and Storeplane's own images.
	Function func(compose.Source, images.Set) converge.Runner

	// Images are Storeplane's own images of the release that is to compose the claims. Where it is
	// nil, the images that a claim runs are used.
	Images *images.Set

	// State is what the cluster contains.
	State State

	// Now is the time of the plan.
	Now time.Time

	// Replace plans claims that replace the existing ones, as kubectl replace does, instead of
	// being merged into them, as kubectl apply does.
	Replace bool

	// DryRun applies the objects of a plan on the API server without storing them. May be nil.
	DryRun DryRun

	// Namespaces are those that are created together with the claims. A dry run tries nothing in
	// one that does not exist yet.
	Namespaces []string

	// Prices are those of what claims request. May be nil.
	Prices *Prices

	mu        sync.Mutex
	functions map[made]converge.Runner
}

// made identifies a function by what it was created with.
type made struct {
	source   compose.Source
	registry string
	digests  string
}

// function returns the function for a source and images. It is created once, since each function
// runs goroutines of its own.
func (p *Planner) function(source compose.Source, own images.Set) converge.Runner {
	k := made{source: source, registry: own.Registry, digests: fmt.Sprint(own.Digests)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.functions == nil {
		p.functions = map[made]converge.Runner{}
	}
	if p.functions[k] == nil {
		p.functions[k] = p.Function(source, own)
	}
	return p.functions[k]
}

// Plan plans the application of a claim. What the author of the claim has to correct is returned as
// the plan's refusal, and everything else as an error.
func (p *Planner) Plan(ctx context.Context, claim *unstructured.Unstructured) (*Claim, error) {
	e, err := p.edit(ctx, claim)
	if err != nil {
		return nil, err
	}
	out := &Claim{Object: objectOf(e.next), Exists: e.live != nil}
	if e.live != nil {
		out.Edits = fieldsOf(e.live, e.next, e.live, e.next)
	}
	if out.Guardrails, err = p.guard(ctx, e); err != nil {
		return nil, err
	}
	out.Notes = notesOf(e, out.Edits)
	before, after, err := p.run(ctx, e)
	if converge.IsRefused(err) {
		out.Refusal = refusalOf(err)
		if doubt := e.doubt(out.Refusal); doubt != "" {
			return nil, fmt.Errorf("cannot plan %s: %s", out.Object, doubt)
		}
		return p.finish(out), nil
	}
	if err != nil {
		return nil, err
	}
	if doubt := e.doubt(e.refused); doubt != "" {
		return nil, fmt.Errorf("cannot plan %s: %s", out.Object, doubt)
	}
	refused := e.refused
	secret, err := p.madeOfSecrets(ctx, e, before)
	if err != nil {
		return nil, err
	}
	e.refused = refused
	will, pairs := p.compare(out, e, before, after, secret)
	if out.Refusal = e.refused; out.Refusal != "" {
		return p.finish(out), nil
	}
	if err := p.dryRun(ctx, out, e, pairs, will); err != nil {
		return nil, err
	}
	if !after.Ready {
		out.Waits, _, _ = unstructured.NestedString(after.Claim.Object, "status", "message")
	}
	return p.finish(out), nil
}

// notesOf returns what keeps an edit from taking effect.
func notesOf(e *edit, edits []Field) []string {
	if e.live == nil {
		return nil
	}
	var out []string
	if e.live.GetDeletionTimestamp() != nil {
		out = append(out, "the claim is being deleted: an edit has no effect any more")
	}
	if xpmeta.IsPaused(e.next) {
		out = append(out, "the claim is paused: nothing of this happens until annotation crossplane.io/paused is removed")
	}
	if by := metav1.GetControllerOf(e.live); by != nil {
		out = append(out, fmt.Sprintf("the claim is composed by %s %s, which reverts the edit: edit that one", by.Kind, by.Name))
	}
	for _, u := range e.tree {
		if release, _, _ := unstructured.NestedString(u.Object, "status", appsv1.FieldPendingRelease); release != "" {
			then := "an edit of what that one runs brings it at once"
			if areUnheld(edits) {
				then = "this edit does not bring it outside of the window, and what of it is listed as drift waits as well"
			}
			out = append(out, fmt.Sprintf("release %s waits for the maintenance window of %s: %s", release, objectOf(u), then))
		}
	}
	return out
}

// areUnheld reports whether all edits are of fields that do not count as an edit of what a claim
// runs.
func areUnheld(edits []Field) bool {
	return len(edits) > 0 && !slices.ContainsFunc(edits, func(f Field) bool {
		return !slices.ContainsFunc(compose.Unheld, func(field string) bool { return within(f.Path, "spec."+field) })
	})
}

// refusalOf returns the message by which a claim, or one that it composes, is refused.
func refusalOf(err error) string {
	if refused, ok := errors.AsType[*converge.RefusedError](err); ok {
		return refused.Error()
	}
	if invalid, ok := errors.AsType[*xrd.InvalidError](err); ok {
		return invalid.Error()
	}
	return err.Error()
}

// finish completes a plan. All reads are done by then, so that it lists everything that could not
// be read.
func (p *Planner) finish(out *Claim) *Claim {
	out.Unknown = append(out.Unknown, p.State.Unknown()...)
	out.conclude()
	return out
}

// edit is an edit of a claim.
type edit struct {
	// tree is the claim and the objects below it in the cluster, and live the claim in it, nil
	// where it does not exist.
	tree []*unstructured.Unstructured
	live *unstructured.Unstructured

	// next is the claim with the edit, and with the defaults of this release.
	next *unstructured.Unstructured

	// written is the claim with the edit, without defaults: those that the API server adds may be
	// of another release.
	written *unstructured.Unstructured

	// refused is why a composed claim is refused, or "".
	refused string

	// standIns are the names of the Secrets that may not be read, and that stand-ins replaced.
	standIns []string
}

// doubt returns why a refusal is uncertain, or "": it is about a Secret that may not be read, with
// whose content the claim might be accepted.
func (e *edit) doubt(refusal string) string {
	for _, name := range e.standIns {
		if strings.Contains(refusal, name) {
			return fmt.Sprintf("it needs what is in Secret %s, which may not be read or was not saved: plan with the right to get it (without that: %s)", name, refusal)
		}
	}
	return ""
}

func (p *Planner) edit(ctx context.Context, claim *unstructured.Unstructured) (*edit, error) {
	// This sets the namespace. Fields that the API server would drop are refused later.
	next, err := p.Schemas.Default(claim)
	if err != nil {
		return nil, err
	}
	tree, err := p.State.Tree(ctx, objectOf(next))
	if err != nil {
		return nil, fmt.Errorf("cannot read what the cluster has of %s: %w", objectOf(next), err)
	}
	e := &edit{tree: tree, next: withDefaults(claim, next), written: claim.DeepCopy()}
	e.written.SetNamespace(next.GetNamespace())
	for _, u := range tree {
		if keyOf(u) == keyOf(next) {
			e.live = u
		}
	}
	if e.live == nil {
		return e, nil
	}
	e.written, err = p.apply(e.live, claim)
	if err != nil {
		return nil, err
	}
	e.next = e.written
	if defaulted, err := p.Schemas.Default(e.next); err == nil {
		e.next = withDefaults(e.next, defaulted)
	}
	return e, nil
}

// withDefaults returns a claim as it was written, with its defaults. It still contains unknown
// fields, so that validation can refuse them.
func withDefaults(claim, defaulted *unstructured.Unstructured) *unstructured.Unstructured {
	out := claim.DeepCopy()
	out.SetNamespace(defaulted.GetNamespace())
	out.Object["spec"] = overlay(defaulted.Object["spec"], claim.Object["spec"])
	return out
}

// overlay returns a value with defaults, overwritten by what was written.
func overlay(defaulted, written any) any {
	d, ok := defaulted.(map[string]any)
	w, also := written.(map[string]any)
	if !ok || !also {
		if written == nil {
			return defaulted
		}
		return written
	}
	out := map[string]any{}
	maps.Copy(out, d)
	for k, v := range w {
		out[k] = overlay(d[k], v)
	}
	return out
}

// apply merges a file into the live claim as kubectl apply does, by three-way merge: fields that
// were applied before and are not in the file are removed, and those of other managers stay, like
// replicas that kubectl scale set.
func (p *Planner) apply(live, file *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	written := func(u *unstructured.Unstructured) map[string]any {
		out := map[string]any{"spec": map[string]any{}, "metadata": map[string]any{}}
		if spec, ok := u.DeepCopy().Object["spec"].(map[string]any); ok {
			delete(spec, "crossplane")
			out["spec"] = spec
		}
		labels, annotations := u.GetLabels(), maps.Clone(u.GetAnnotations())
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		out["metadata"] = map[string]any{"labels": asAny(labels), "annotations": asAny(annotations)}
		return out
	}
	before := map[string]any{}
	if p.Replace {
		before = written(live)
	} else if last, err := lastWritten(live); err != nil {
		return nil, err
	} else if last != nil {
		before = written(last)
	}
	out := live.DeepCopy()
	merged := converge.Merge(written(live), before, written(file))
	crossplane, had, _ := unstructured.NestedFieldCopy(live.Object, "spec", "crossplane")
	out.Object["spec"] = merged["spec"]
	if own, ok, _ := unstructured.NestedFieldCopy(file.Object, "spec", "crossplane"); ok {
		crossplane, had = own, true
	}
	if had {
		if err := unstructured.SetNestedField(out.Object, crossplane, "spec", "crossplane"); err != nil {
			return nil, err
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		texts, _, _ := unstructured.NestedStringMap(merged, "metadata", field)
		if last, ok := live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; ok && field == "annotations" {
			texts[corev1.LastAppliedConfigAnnotation] = last // The annotation is kubectl's own record.
		}
		if err := unstructured.SetNestedStringMap(out.Object, texts, "metadata", field); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func asAny(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// lastWritten returns what was last applied of a claim: what kubectl apply recorded in its
// annotation, or else what was applied server-side. It is nil for a claim that was never applied.
func lastWritten(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if text := live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; text != "" {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(text)); err != nil {
			return nil, fmt.Errorf("cannot read annotation %s of %s: %w", corev1.LastAppliedConfigAnnotation, objectOf(live), err)
		}
		return u, nil
	}
	s, err := structpb.NewStruct(live.Object)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", objectOf(live), err)
	}
	var out map[string]any
	for _, m := range live.GetManagedFields() {
		if m.Operation != metav1.ManagedFieldsOperationApply || m.Subresource != "" || strings.HasPrefix(m.Manager, "apiextensions.crossplane.io/") {
			continue
		}
		if own, ok := fieldowner.Applied(s, m.Manager); ok {
			out = converge.Merge(out, nil, own.AsMap())
		}
	}
	if out == nil {
		return nil, nil // it was never applied
	}
	return &unstructured.Unstructured{Object: out}, nil
}

// run composes the claim as it is until nothing changes any more, and then with the edit. A claim
// that does not exist is composed with the edit alone, and so is one that is refused as it is and
// therefore stays as it is: before is nil then.
func (p *Planner) run(ctx context.Context, e *edit) (before, after *converge.Result, err error) {
	r, in := p.renderer(e, drawn{now: p.Now, password: placeholder})
	if e.live == nil {
		after, err = r.Run(ctx, in)
		return nil, after, err
	}
	in.Claim = e.live
	m, before, err := r.Begin(ctx, in)
	if converge.IsRefused(err) {
		in.Claim = e.next
		after, err = r.Run(ctx, in)
		return nil, after, err
	}
	if err != nil {
		return nil, nil, err
	}
	e.refused = "" // A refusal that exists already is not caused by the edit.
	after, err = m.Apply(ctx, e.next)
	return before, after, err
}

// renderer returns a renderer of a claim with a source of passwords and time.
func (p *Planner) renderer(e *edit, source compose.Source) (*render.Renderer, render.Input) {
	r := &render.Renderer{Schemas: p.Schemas, Compositions: p.Compositions, Function: p.function(source, p.images(e.tree))}
	e.refused = ""
	return r, render.Input{
		Claim: e.next, Existing: e.tree, Fetch: p.fetch(e), Serves: p.State.Serves, Unchecked: true,
		Refused: func(err *converge.RefusedError) { e.refused = err.Error() },
	}
}

// madeOfSecrets returns the fields of composed objects that are derived from Secrets which could
// not be read: those that differ when other passwords and keys are generated.
func (p *Planner) madeOfSecrets(ctx context.Context, e *edit, before *converge.Result) (map[key][]Field, error) {
	if before == nil || !p.State.HidesSecrets() {
		return nil, nil //nolint:nilnil // there are none
	}
	// Certificates that are generated at a later time differ in all of their lines.
	r, in := p.renderer(e, drawn{now: p.Now.Add(61 * time.Second), password: placeholder + "-2"})
	in.Claim = e.live
	again, err := r.Run(ctx, in)
	if err != nil {
		return nil, err
	}
	out := map[key][]Field{}
	for _, p := range compare(objectsOf(before), objectsOf(again), nil) {
		out[keyOf(p.either())] = p.Fields
	}
	return out, nil
}

// fetch returns a callback that reads what the function requires. Where the installation's settings
// may not be read, it returns those with which the claim was composed last, from the claim's
// status.
func (p *Planner) fetch(e *edit) func(context.Context, string, *fnv1.ResourceSelector) ([]*unstructured.Unstructured, error) {
	return func(ctx context.Context, requirement string, sel *fnv1.ResourceSelector) ([]*unstructured.Unstructured, error) {
		found, err := p.State.Fetch(ctx, sel)
		o := Object{APIVersion: sel.GetApiVersion(), Kind: sel.GetKind(), Namespace: sel.GetNamespace(), Name: sel.GetMatchName()}
		switch {
		case err != nil || len(found) > 0 || o.Name == "" || !p.State.Hides(o):
			return found, err
		case o.Kind == "Secret" && !strings.HasPrefix(requirement, compose.ExistingPrefix):
			e.standIns = append(e.standIns, o.Name)
			return []*unstructured.Unstructured{standIn(o)}, nil
		case o.Kind != waves.SettingsKind.Kind || e.live == nil:
			return nil, nil
		}
		text, _, _ := unstructured.NestedString(e.live.Object, "status", appsv1.FieldAcceptedSettings)
		data := map[string]any{}
		if json.Unmarshal([]byte(text), &data) != nil {
			return nil, nil //nolint:nilerr // a claim without settings
		}
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": sel.GetApiVersion(), "kind": waves.SettingsKind.Kind, "data": data}}
		u.SetName(sel.GetMatchName())
		return []*unstructured.Unstructured{u}, nil
	}
}

// standIn returns a stand-in for a Secret that a user created for the claim and that may not be
// read. It has all keys that are read from such Secrets.
func standIn(o Object) *unstructured.Unstructured {
	data := map[string]any{}
	for _, k := range []string{
		backup.KeyAWSAccess, backup.KeyAWSSecret, backup.KeyGCS, backup.KeyAzureAccount, backup.KeyAzure,
		appsv1.ConnectionUsername, appsv1.ConnectionPassword, "passphrase",
	} {
		data[k] = base64.StdEncoding.EncodeToString([]byte(placeholder))
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": o.APIVersion, "kind": o.Kind, "data": data}}
	u.SetNamespace(o.Namespace)
	u.SetName(o.Name)
	return u
}

// placeholder stands in for each password, and is longer than the shortest one that is accepted.
const placeholder = compose.Placeholder + "-0000000"

// drawn stands in for all that is generated at random. None of it is printed.
type drawn struct {
	now      time.Time
	password string
}

// Password implements compose.Source.
func (d drawn) Password() (string, error) { return d.password, nil }

// Now implements compose.Source.
func (d drawn) Now() time.Time { return d.now }

// compare adds the differences between the claim as it is and as it becomes to the plan. It returns
// the objects after the edit, and the differences.
func (p *Planner) compare(out *Claim, e *edit, before, after *converge.Result, secret map[key][]Field) (objects, []pair) {
	had := objects{}
	if e.live != nil {
		had = existingObjects(e.live, e.tree)
	}
	as := had
	if before != nil {
		as = objectsOf(before)
		drift := readable(compare(had, as, stagesOf(before)), p.State.Hides, secret)
		out.Drift, out.DriftEffects = changesOf(drift), effectsOf(drift, had)
	}
	will := objectsOf(after)
	pairs := compare(as.adopt(after.Adopted), will, stagesOf(after))
	out.Changes, out.Effects = changesOf(pairs), effectsOf(pairs, had)
	if p.Prices != nil {
		out.Cost = p.Prices.compare(as, will)
	}
	return will, pairs
}

// guard checks the claim against the guardrails in the installation's settings.
func (p *Planner) guard(ctx context.Context, e *edit) (*Guardrails, error) {
	if p.Schemas.Validate(e.next) != nil {
		return nil, nil //nolint:nilerr // the refusal of an invalid claim explains more
	}
	settings, err := p.fetch(e)(ctx, "", render.Settings())
	if err != nil {
		return nil, fmt.Errorf("cannot read the installation's settings: %w", err)
	}
	defaulted, err := p.Schemas.Default(e.next)
	if err != nil {
		return nil, err
	}
	report, err := render.Guard(defaulted, settings)
	if err != nil {
		return nil, err
	}
	out := &Guardrails{Passed: report.Summary.Pass}
	for _, r := range report.Results {
		if r.Result == guardrails.Fail {
			out.Broken = append(out.Broken, r.Message)
		}
	}
	return out, nil
}

// Deletion plans the deletion of a claim.
func (p *Planner) Deletion(ctx context.Context, claim *unstructured.Unstructured) (*Claim, error) {
	e, err := p.edit(ctx, claim)
	if err != nil {
		return nil, err
	}
	out := &Claim{Object: objectOf(e.next), Exists: e.live != nil, Deletes: true}
	if e.live == nil {
		return p.finish(out), nil
	}
	had := existingObjects(e.live, e.tree)
	if p.isProtected(had, e.live) {
		out.Refusal = fmt.Sprintf("the deletion of %s is refused, for it is protected: set spec.deletionProtection to false first", out.Object)
		return p.finish(out), nil
	}
	pairs := compare(had, objects{}, nil)
	out.Changes, out.Effects = changesOf(pairs), effectsOf(pairs, had)
	if p.Prices != nil {
		out.Cost = p.Prices.compare(had, objects{})
	}
	return p.finish(out), nil
}

// isProtected reports whether a Usage protects a claim. A Usage of the claim that may not be read
// counts as one that does.
func (p *Planner) isProtected(all objects, claim *unstructured.Unstructured) bool {
	for _, o := range all {
		kind, _, _ := unstructured.NestedString(o.live.Object, "spec", "of", "kind")
		name, _, _ := unstructured.NestedString(o.live.Object, "spec", "of", "resourceRef", "name")
		if o.live.GetKind() == "Usage" && kind == claim.GetKind() && name == claim.GetName() {
			return true
		}
	}
	refs, _, _ := unstructured.NestedSlice(claim.Object, "spec", "crossplane", "resourceRefs")
	for _, r := range refs {
		// A claim composes no Usage but its own.
		if m, ok := r.(map[string]any); ok && m["kind"] == "Usage" {
			name, _ := m["name"].(string)
			apiVersion, _ := m["apiVersion"].(string)
			if p.State.Hides(Object{APIVersion: apiVersion, Kind: "Usage", Namespace: claim.GetNamespace(), Name: name}) {
				return true
			}
		}
	}
	return false
}
