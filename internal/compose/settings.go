package compose

import (
	"encoding/json"

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
func (c *Claim) Settings(read func(Data) error) error {
	last := c.lastSettings()
	var err error
	switch {
	case c.settings != nil:
		err = read(Data{c.settings})
	case len(last.GetFields()) > 0:
		err = Invalidf("EnvironmentConfig storeplane, with whose settings this claim was composed, does not exist: create it again. Without data it means the defaults, and may be deleted")
	}
	if err == nil {
		c.acceptedSettings = c.settings
		return nil
	}
	if last == nil || read(Data{last}) != nil {
		return err
	}
	c.acceptedSettings, c.settingsProblem = last, err
	return nil
}

// Data of the installation's EnvironmentConfig.
type Data struct{ data *structpb.Struct }

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

// settingsText is what the claim remembers of its settings, or "". The same
// settings are the same text: protobuf's own JSON is not.
func (c *Claim) settingsText() string {
	if c.acceptedSettings == nil {
		return ""
	}
	text, err := json.Marshal(c.acceptedSettings.AsMap())
	if err != nil {
		return ""
	}
	return string(text)
}
