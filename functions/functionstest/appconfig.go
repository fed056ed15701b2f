package functionstest

import (
	"github.com/storeplane/storeplane/internal/appconfig"
)

// WantedBundle returns the name of the bundle of the AppConfig's current configuration.
func (c *Crossplane) WantedBundle() string {
	p := Get(c.Observed["appconfig"], "spec", "forProvider")
	return BundleName(Get(p.GetStructValue(), "application").GetStringValue(), Get(p.GetStructValue(), "config").GetStructValue().AsMap())
}

// BundleName returns the name of the bundle of an application with a config.
func BundleName(application string, config map[string]any) string {
	values := map[string]string{}
	for k, v := range config {
		values[k], _ = v.(string)
	}
	return appconfig.Name(application, values)
}

// TakeUpConfig rolls out the wanted bundle as the provider does, and returns its name. The bundle
// exists and is not known to work yet.
func (c *Crossplane) TakeUpConfig() string {
	c.t.Helper()
	b := c.WantedBundle()
	c.ReportAppConfig(`{bundle: `+b+`, pending: `+b+`, lastGood: "`+c.LastGoodBundle()+`"}`, "RollingOut", "hello-web is on its way")
	return b
}

// RollBackConfig rolls back the wanted bundle to the last one that worked, as the provider does.
func (c *Crossplane) RollBackConfig(message string) {
	c.t.Helper()
	good := c.LastGoodBundle()
	c.ReportAppConfig(`{bundle: `+good+`, lastGood: `+good+`, failed: {bundle: `+c.WantedBundle()+`, reason: PodFailing, message: x}}`, "RolledBack", message)
}

// ReportAppConfig writes the provider's status of an AppConfig that is not Ready.
func (c *Crossplane) ReportAppConfig(atProvider, reason, message string) {
	c.t.Helper()
	c.SetStatus("appconfig", `{atProvider: `+atProvider+`}`)
	generation := Get(c.Observed["appconfig"], "metadata", "generation").GetNumberValue()
	Set(c.Observed["appconfig"], []any{
		map[string]any{"type": "Synced", "status": "True", "observedGeneration": generation},
		map[string]any{"type": "Ready", "status": "False", "reason": reason, "message": message, "observedGeneration": generation},
	}, "status", "conditions")
}

// LastGoodBundle returns the name of the last bundle that worked.
func (c *Crossplane) LastGoodBundle() string {
	return Get(c.Observed["appconfig"], "status", "atProvider", "lastGood").GetStringValue()
}
