package compose

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/structs"
)

// Settings reads the data of the installation's EnvironmentConfig with a function that decodes and
// checks it. Without an EnvironmentConfig there is nothing to read.
//
// A claim that has been composed with settings continues with these while the current ones cannot
// be used or are gone, and its condition Accepted reports that: a mistake in the settings must not
// stop what they do not concern, and defaults in their place would move every server to another
// registry. For any other claim, settings that cannot be used are an error of the claim.
//
// The settings that the claim continues with were checked when they were accepted. The function
// must not check them again (see Data.IsAccepted): with a new release that checks more, settings
// that have not changed would block every claim.
//
// The function returns the part of the settings that it reads. Only that is recorded, since more
// people may read the claim's status than the settings.
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

// accept reads settings, and records them as those that the claim is composed with.
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

// Data is the data of the installation's EnvironmentConfig.
type Data struct {
	data     *structpb.Struct
	accepted bool
}

// DataOf returns the data of an EnvironmentConfig that no claim has been composed with.
func DataOf(data map[string]any) (Data, error) {
	s, err := structpb.NewStruct(data)
	if err != nil {
		return Data{}, Invalidf("cannot read EnvironmentConfig storeplane: %v", err)
	}
	return Data{data: s}, nil
}

// IsAccepted reports whether the claim has been composed with the data before. It passed the checks
// of that time, and only data that cannot be decoded is an error now.
func (d Data) IsAccepted() bool { return d.accepted }

// Decode decodes the data into a pointer to its type.
func (d Data) Decode(into any) error {
	if err := structs.Decode(d.data, into); err != nil {
		return Invalidf("cannot read EnvironmentConfig storeplane: data.%v", err)
	}
	return nil
}

// lastSettings returns the settings that the claim was last composed with, or nil.
func (c *Claim) lastSettings() *structpb.Struct {
	text := c.status(appsv1.FieldAcceptedSettings).GetStringValue()
	if text == "" {
		return nil
	}
	out := &structpb.Struct{}
	if out.UnmarshalJSON([]byte(text)) != nil {
		return nil
	}
	return out
}
