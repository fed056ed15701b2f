package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
)

// variables are the global variables that were set in the running program.
type variables struct {
	mu sync.Mutex

	// began is when the program was started that they were set in, and want what was to be set last.
	// fresh are the values before the first one was set, and refused is why the server refuses a value.
	began          time.Time
	want           map[string]string
	fresh, refused map[string]string
}

// SetVariables sets the global variables of the running server to those of a file, an object of JSON. One
// that the file does not have any more gets the value of before, as does one whose value the server refuses:
// it is the same on each server then, whenever that was started. It returns those that are refused.
func (s *Supervisor) SetVariables(ctx context.Context, file string) ([]instance.Problem, error) {
	want := map[string]string{}
	if err := json.Unmarshal([]byte(file), &want); err != nil {
		return nil, fmt.Errorf("cannot read the variables to set: %w", err)
	}
	v := &s.variables
	v.mu.Lock()
	defer v.mu.Unlock()
	if began := s.began(); !began.Equal(v.began) {
		v.began, v.want, v.fresh, v.refused = began, nil, map[string]string{}, map[string]string{}
	}
	if v.want == nil || !maps.Equal(v.want, want) {
		// Where one is the bound of another, the order in which both can be set depends on their values: the
		// second time the bounds are there.
		for range 2 {
			if err := v.bring(ctx, s, want); err != nil {
				return nil, err
			}
		}
		v.want = want
	}
	var problems []instance.Problem
	for _, name := range slices.Sorted(maps.Keys(v.refused)) {
		problems = append(problems, instance.Problem{Subject: instance.SubjectParameter, Name: name, Message: v.refused[name]})
	}
	return problems, nil
}

// bring sets all variables: a change of one may have changed another one.
func (v *variables) bring(ctx context.Context, s *Supervisor, want map[string]string) error {
	v.refused = map[string]string{}
	// Those that are not wanted any more come first.
	for _, name := range slices.Sorted(maps.Keys(v.fresh)) {
		if _, wanted := want[name]; !wanted {
			if err := v.restore(ctx, s, name); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, known := v.fresh[name]; !known {
			fresh, err := s.server.Variable(ctx, name)
			if err != nil {
				return err
			}
			v.fresh[name] = fresh
		}
		refusal, err := s.server.SetVariable(ctx, name, want[name])
		if err != nil {
			return err
		}
		if refusal == "" {
			continue
		}
		v.refused[name] = refusal
		if err := v.restore(ctx, s, name); err != nil {
			return err
		}
	}
	return nil
}

// restore sets a variable to its value of before.
func (v *variables) restore(ctx context.Context, s *Supervisor, name string) error {
	refusal, err := s.server.SetVariable(ctx, name, v.fresh[name])
	if refusal != "" {
		s.log.Info("Cannot restore a variable", "variable", name, "value", v.fresh[name], "error", refusal)
	}
	return err
}

// configure sets the variables before the server joins its group, and clients find it. It keeps the server
// from nothing: what fails is tried again by the manager, which reports what the server refuses. That may
// have set newer ones already.
func (s *Supervisor) configure(ctx context.Context) {
	s.variables.mu.Lock()
	done := s.variables.want != nil && s.began().Equal(s.variables.began)
	s.variables.mu.Unlock()
	if done {
		return
	}
	file, err := os.ReadFile(s.VariablesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return // A function of an earlier release has them all in the file of options.
	}
	if err == nil {
		_, err = s.SetVariables(ctx, string(file))
	}
	if err != nil {
		s.log.Info("Cannot set the parameters before the server joins its group", "error", err)
	}
}
