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

	// began is when the program was started that they were set in, set are their values, and refused is why
	// the server has refused one, by name.
	began   time.Time
	set     map[string]string
	refused map[string]string
}

// SetVariables sets the global variables of the running server to those of a file, and those that were set
// before and that it does not have to their defaults. It returns those that the server refuses: they are
// tried again once they have another value, and by the next program.
func (s *Supervisor) SetVariables(ctx context.Context, file string) ([]instance.Problem, error) {
	want := map[string]string{}
	if err := json.Unmarshal([]byte(file), &want); err != nil {
		return nil, fmt.Errorf("cannot read the variables to set: %w", err)
	}
	v := &s.variables
	v.mu.Lock()
	defer v.mu.Unlock()
	if began := s.began(); !began.Equal(v.began) {
		v.began, v.set, v.refused = began, map[string]string{}, map[string]string{}
	}
	names := maps.Clone(want)
	maps.Copy(names, v.set)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := v.bring(ctx, s, name, want); err != nil {
			return nil, err
		}
	}
	var problems []instance.Problem
	for _, name := range slices.Sorted(maps.Keys(v.refused)) {
		problems = append(problems, instance.Problem{Subject: instance.SubjectParameter, Name: name, Message: v.refused[name]})
	}
	return problems, nil
}

// bring sets one variable, unless it was set to that value.
func (v *variables) bring(ctx context.Context, s *Supervisor, name string, want map[string]string) error {
	value, wanted := want[name]
	if set, ok := v.set[name]; ok == wanted && set == value {
		return nil
	}
	var to *string
	if wanted {
		to = &value
	}
	refusal, err := s.server.SetVariable(ctx, name, to)
	if err != nil {
		return err
	}
	delete(v.set, name)
	delete(v.refused, name)
	if wanted {
		v.set[name] = value
	}
	if refusal != "" {
		v.refused[name] = refusal
	}
	return nil
}

// configure sets the variables before the server joins its group, and clients find it. A value that the
// server refuses keeps it from nothing: the manager reports that.
func (s *Supervisor) configure(ctx context.Context) error {
	file, err := os.ReadFile(s.VariablesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // A function of an earlier release has them all in the file of options.
	}
	if err != nil {
		return fmt.Errorf("cannot read the variables to set: %w", err)
	}
	_, err = s.SetVariables(ctx, string(file))
	return err
}
