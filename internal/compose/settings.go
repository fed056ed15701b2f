package compose

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/internal/structs"
)

// Settings reads the data of the installation's EnvironmentConfig by a function
// that decodes and checks it. Without any there is nothing to read.
//
// A claim that has been composed with settings goes on with those while they
// cannot be used or are gone, and its condition Accepted says so: a mistake in
// them must not hold up what has nothing to do with it, and defaults in their
// place would move every server to another registry. For another claim settings
// that cannot be used are an error of the claim.
//
// What the claim goes on with was checked when it was accepted. The function must not
// check it again, see Data.IsAccepted: with a new release that checks more, settings that
// have not changed would hold up every claim.
//
// The function returns what of them it reads: only that is remembered, since the
// claim's status is for more eyes than the settings are.
func (c *Claim) Settings(read func(Data) (any, error)) error {
	last := c.lastSettings()
	var err error
	switch {
	case c.settings != nil:
		err = c.accept(read, Data{data: c.settings})
	case len(last.GetFields()) > 0:
		err = Invalidf("EnvironmentConfig storeplane, with whose settings this claim was composed, does not exist: create it again. Without data it means the defaults, and may be deleted")
	}
	if err == nil {
		return nil
	}
	if last == nil || c.accept(read, Data{data: last, accepted: true}) != nil {
		return err
	}
	c.settingsProblem = err
	return nil
}

// accept settings if they can be read.
func (c *Claim) accept(read func(Data) (any, error), data Data) error {
	used, err := read(data)
	if err != nil {
		return err
	}
	text, err := json.Marshal(used)
	if err != nil {
		return fmt.Errorf("cannot remember EnvironmentConfig storeplane: %w", err)
	}
	c.acceptedSettings = string(text)
	return nil
}

// Data of the installation's EnvironmentConfig.
type Data struct {
	data     *structpb.Struct
	accepted bool
}

// DataOf an EnvironmentConfig that no claim is composed with.
func DataOf(data map[string]any) (Data, error) {
	s, err := structpb.NewStruct(data)
	if err != nil {
		return Data{}, Invalidf("cannot read EnvironmentConfig storeplane: %v", err)
	}
	return Data{data: s}, nil
}

// IsAccepted tells whether the claim has been composed with the data before: it passed
// the checks of that time, and only what cannot be decoded is an error now.
func (d Data) IsAccepted() bool { return d.accepted }

// Decode the data into a pointer to its type.
func (d Data) Decode(into any) error {
	if err := structs.Decode(d.data, into); err != nil {
		return Invalidf("cannot read EnvironmentConfig storeplane: data.%v", err)
	}
	return nil
}

// lastSettings that the claim was composed with, or nil.
func (c *Claim) lastSettings() *structpb.Struct {
	text := c.status("acceptedSettings").GetStringValue()
	if text == "" {
		return nil
	}
	out := &structpb.Struct{}
	if out.UnmarshalJSON([]byte(text)) != nil {
		return nil
	}
	return out
}
