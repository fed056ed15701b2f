package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/text"
)

// Fleet plans what the planner's release and settings change of existing claims, without an edit of
// any. The plans are in the order of the claims. Each finished plan is passed to done, which may be
// nil.
func (p *Planner) Fleet(ctx context.Context, claims []*unstructured.Unstructured, done func(*Claim)) ([]Claim, error) {
	plans, errs := make([]*Claim, len(claims)), make([]error, len(claims))
	next := make(chan int)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := range next {
				if plans[i], errs[i] = p.standing(ctx, claims[i]); errs[i] == nil && done != nil {
					done(plans[i])
				}
			}
		})
	}
	for i := range claims {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	all.Wait()
	if err := errors.Join(ctx.Err(), errors.Join(errs...)); err != nil {
		return nil, err
	}
	out := make([]Claim, 0, len(plans))
	for _, c := range plans {
		out = append(out, *c)
	}
	return out, nil
}

// standing plans a claim without an edit: the release changes what differs from the composed
// result.
func (p *Planner) standing(ctx context.Context, claim *unstructured.Unstructured) (*Claim, error) {
	out := &Claim{Object: objectOf(claim), Exists: true}
	tree, err := p.State.Tree(ctx, out.Object)
	if err != nil {
		return nil, fmt.Errorf("cannot read what the cluster has of %s in namespace %s: %w", out.Object, out.Object.Namespace, err)
	}
	e := &edit{tree: tree, live: claim, next: claim}
	r, in := p.renderer(e, drawn{now: p.Now, password: placeholder})
	result, err := r.Run(ctx, in)
	if converge.IsRefused(err) {
		if out.Refusal = refusalOf(err); e.doubt(out.Refusal) != "" {
			out.Unknown, out.Refusal = append(out.Unknown, e.doubt(out.Refusal)), ""
		}
		return p.finish(out), nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot plan %s in namespace %s: %w", out.Object, out.Object.Namespace, err)
	}
	secret, err := p.madeOfSecrets(ctx, e, result)
	if err != nil {
		return nil, err
	}
	had, will := existingObjects(claim, tree), objectsOf(result)
	pairs := readable(compare(had, will, stagesOf(result)), p.State.Hides, secret)
	out.Changes, out.Effects = changesOf(pairs), effectsOf(pairs, had)
	if p.Prices != nil {
		out.Cost = p.Prices.compare(had, will)
	}
	return p.finish(out), nil
}

// FleetText writes a report on many claims for people: by namespace, the worst first, and a line
// for each claim that changes. With details it writes the whole plan of each of these.
func (r *Report) FleetText(w io.Writer, details bool) error {
	t := &page{}
	changed := 0
	for _, n := range r.namespaces() {
		if n.sum.Verdict() == NoChange {
			continue
		}
		t.linef("namespace %s: %s", n.name, n.sum.consequences())
		for _, c := range n.claims {
			if c.Verdict == NoChange {
				continue
			}
			changed++
			if details {
				t.claim(c, true)
				continue
			}
			if c.Refusal != "" {
				t.linef("  ! %s: refused: %s", c.Object, c.Refusal)
				continue
			}
			sign := "~"
			if c.Verdict == Interrupts {
				sign = "!"
			}
			t.linef("  %s %s: %s", sign, c.Object, c.Summary.consequences())
		}
		t.linef("")
	}
	t.linef("Fleet: %d of %s: %s.", changed, text.Count(len(r.Claims), "claim"), r.Summary.consequences())
	_, err := io.WriteString(w, t.b.String())
	return err
}

// consequences returns the counts in one line.
func (s Summary) consequences() string {
	objects := s.Create + s.Change + s.Delete
	if s.Refused > 0 && objects == 0 {
		return text.Count(s.Refused, "claim") + " refused"
	}
	out := fmt.Sprintf("%s change, %s, %s, %s", text.Count(objects, "object"), ends(s.Pods), text.Count(s.Switchovers, "switchover"), text.Count(s.Interruptions, "interruption"))
	if s.Destroys > 0 {
		out += fmt.Sprintf(", data lost %d times", s.Destroys)
	}
	if s.Refused > 0 {
		out += ", " + text.Count(s.Refused, "claim") + " refused"
	}
	return out
}

func ends(pods int) string {
	if pods == 1 {
		return "1 pod ends or restarts"
	}
	return fmt.Sprintf("%d pods end or restart", pods)
}

// namespace is a namespace of a fleet, with its claims.
type namespace struct {
	name   string
	sum    Summary
	claims []*Claim
}

// namespaces returns the namespaces and their claims, the worst first.
func (r *Report) namespaces() []*namespace {
	var out []*namespace
	byName := map[string]*namespace{}
	for i := range r.Claims {
		c := &r.Claims[i]
		n := byName[c.Object.Namespace]
		if n == nil {
			n = &namespace{name: c.Object.Namespace}
			byName[n.name] = n
			out = append(out, n)
		}
		n.sum = n.sum.plus(c.Summary)
		n.claims = append(n.claims, c)
	}
	worst := func(a, b Summary) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Destroys, a.Destroys), cmp.Compare(b.Interruptions, a.Interruptions), cmp.Compare(b.Pods, a.Pods))
	}
	for _, n := range out {
		slices.SortStableFunc(n.claims, func(a, b *Claim) int {
			return cmp.Or(worst(a.Summary, b.Summary), cmp.Compare(a.Object.Kind, b.Object.Kind), cmp.Compare(a.Object.Name, b.Object.Name))
		})
	}
	slices.SortStableFunc(out, func(a, b *namespace) int { return cmp.Or(worst(a.sum, b.sum), cmp.Compare(a.name, b.name)) })
	return out
}
