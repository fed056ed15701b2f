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
	"github.com/storeplane/storeplane/internal/instance/mysql/parameter"
	"github.com/storeplane/storeplane/internal/instance/mysql/server"
)

// variables are the global variables that were set in the running program.
type variables struct {
	mu sync.Mutex

	// began is when the program was started that they were set in, and want what was set last, or nil while
	// that is not done. fresh are the values of all before the first one was set, and refused is why the
	// server does not have a value.
	began          time.Time
	want           map[string]string
	fresh, refused map[string]string
}

// SetVariables sets the global variables of the running server to those of a file, an object of JSON. One
// that the file does not have gets the value that it had as the program started, as does one whose value
// the server refuses: it is the same on each server then, whenever that was started. It returns those that
// are refused. What fails otherwise is tried again by the next call, and keeps no other one from being set.
func (s *Supervisor) SetVariables(ctx context.Context, file string) ([]instance.Problem, error) {
	want := map[string]string{}
	if err := json.Unmarshal([]byte(file), &want); err != nil {
		return nil, fmt.Errorf("cannot read the variables to set: %w", err)
	}
	v := &s.variables
	v.mu.Lock()
	defer v.mu.Unlock()
	err := v.bring(ctx, s, want)
	var problems []instance.Problem
	for _, name := range slices.Sorted(maps.Keys(v.refused)) {
		problems = append(problems, instance.Problem{Subject: instance.SubjectParameter, Name: name, Message: v.refused[name]})
	}
	return problems, err
}

// bring sets all variables, unless that is done.
func (v *variables) bring(ctx context.Context, s *Supervisor, want map[string]string) error {
	if began := s.began(); !began.Equal(v.began) {
		fresh, err := s.server.Variables(ctx)
		if err != nil {
			return err
		}
		v.began, v.want, v.fresh, v.refused = began, nil, fresh, nil
	}
	if v.want != nil && maps.Equal(v.want, want) {
		return nil
	}
	v.want, v.refused = nil, map[string]string{}
	var err error
	// Where one is the bound of another, the order in which both can be set depends on their values: the
	// second time the bounds are there.
	for range 2 {
		err = v.set(ctx, s, want)
	}
	if err != nil {
		return err
	}
	has, err := s.server.Variables(ctx)
	if err != nil {
		return err
	}
	for name, value := range want {
		if shown := has[parameter.Variable(name)]; v.refused[name] == "" && !server.Took(value, shown) {
			v.refused[name] = fmt.Sprintf("%s is out of its bounds: MySQL takes %s for it", value, shown)
			err = errors.Join(err, v.restore(ctx, s, name))
		}
	}
	if err == nil {
		v.want = want
	}
	return err
}

// set sets each variable that is wanted, and restores each other one that has changed: one may change with
// another.
func (v *variables) set(ctx context.Context, s *Supervisor, want map[string]string) error {
	has, err := s.server.Variables(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range parameter.Settable() {
		variable := parameter.Variable(name)
		if _, wanted := want[name]; !wanted && has[variable] != v.fresh[variable] {
			errs = append(errs, v.restore(ctx, s, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		refused, err := s.server.SetVariable(ctx, name, want[name])
		if delete(v.refused, name); refused != "" {
			v.refused[name] = refused
			err = errors.Join(err, v.restore(ctx, s, name))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// restore sets a variable to the value that it had as the program started.
func (v *variables) restore(ctx context.Context, s *Supervisor, name string) error {
	fresh := v.fresh[parameter.Variable(name)]
	refused, err := s.server.SetVariable(ctx, name, fresh)
	if refused != "" {
		s.log.Info("Cannot restore a variable", "variable", name, "value", fresh, "error", refused)
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
