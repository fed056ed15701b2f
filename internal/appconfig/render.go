package appconfig

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// limit is the number of bytes that a ConfigMap or a Secret may hold.
const limit = 1 << 20

// longest is the greatest length of a ConfigMap's key.
const longest = 253

var (
	fileName = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Render returns the content of a configuration. secrets is the data of the Secrets that it refers
// to, by name, without those that do not exist. Either the Problem is nil or the Content is empty.
func Render(p *configv1.AppConfigParameters, namespace string, secrets map[string]map[string][]byte) (Content, *Problem) {
	config, values := overlaid(p)
	for _, step := range []func() *Problem{
		func() *Problem { return checkKeys(config) },
		func() *Problem { return expand(p, namespace, config, values) },
	} {
		if problem := step(); problem != nil {
			return Content{}, problem
		}
	}
	secret, problem := taken(p, config, secrets)
	if problem != nil {
		return Content{}, problem
	}
	c := Content{Config: config}
	if len(secret) > 0 {
		c.Secret = secret
	}
	if problem := fits(p, c); problem != nil {
		return Content{}, problem
	}
	return c, nil
}

// overlaid returns config and values: the base, overlaid by the environment's overlay.
func overlaid(p *configv1.AppConfigParameters) (config, values map[string]string) {
	config, values = maps.Clone(p.Config), maps.Clone(p.Values)
	if config == nil {
		config = map[string]string{}
	}
	if values == nil {
		values = map[string]string{}
	}
	o := p.Overlays[string(environment(p))]
	maps.Copy(config, o.Config)
	maps.Copy(values, o.Values)
	return config, values
}

func environment(p *configv1.AppConfigParameters) configv1.Environment {
	return cmp.Or(p.Environment, configv1.Dev)
}

func checkKeys(config map[string]string) *Problem {
	for _, k := range slices.Sorted(maps.Keys(config)) {
		if problem := checkKey(k); problem != nil {
			return problem
		}
	}
	return nil
}

// checkKey checks a key as the API server does, which would refuse the ConfigMap.
func checkKey(k string) *Problem {
	if len(k) > longest || k == "." || k == ".." || !fileName.MatchString(k) {
		return &Problem{Reason: configv1.ReasonInvalidKey, Message: fmt.Sprintf("key %q must have at most %d letters, digits, '-', '_' or '.'", k, longest)}
	}
	return nil
}

// taken returns the keys that are taken from Secrets.
func taken(p *configv1.AppConfigParameters, config map[string]string, secrets map[string]map[string][]byte) (map[string][]byte, *Problem) {
	out, from := map[string][]byte{}, map[string]string{}
	add := func(name, key, as string) *Problem {
		value, ok := secrets[name][key]
		if !ok {
			return &Problem{Reason: configv1.ReasonSecretKeyNotFound, Message: fmt.Sprintf("Secret %s has no key %s", name, key)}
		}
		if problem := checkKey(as); problem != nil {
			return problem
		}
		if _, ok := config[as]; ok {
			return &Problem{Reason: configv1.ReasonKeyConflict, Message: fmt.Sprintf("key %s is both in config and in Secret %s: rename one of them, that of the Secret with secretRefs[].keys[].as", as, name)}
		}
		if other, ok := from[as]; ok {
			return &Problem{Reason: configv1.ReasonKeyConflict, Message: fmt.Sprintf("key %s is taken from both Secret %s and Secret %s: rename one of them with secretRefs[].keys[].as", as, other, name)}
		}
		out[as], from[as] = value, name
		return nil
	}
	for _, r := range p.SecretRefs {
		data, ok := secrets[r.Name]
		if !ok {
			return nil, &Problem{Reason: configv1.ReasonSecretNotFound, Message: "there is no Secret " + r.Name}
		}
		keys := r.Keys
		if len(keys) == 0 {
			for _, k := range slices.Sorted(maps.Keys(data)) {
				keys = append(keys, configv1.SecretKey{Key: k})
			}
		}
		for _, k := range keys {
			if problem := add(r.Name, k.Key, cmp.Or(k.As, k.Key)); problem != nil {
				return nil, problem
			}
		}
	}
	return out, nil
}

// fits checks that the objects can hold the content, and that the containers get all of it.
func fits(p *configv1.AppConfigParameters, c Content) *Problem {
	config, secret := 0, 0
	for k, v := range c.Config {
		config += len(k) + len(v)
	}
	for k, v := range c.Secret {
		secret += len(k) + len(v)
	}
	if config > limit {
		return &Problem{Reason: configv1.ReasonTooLarge, Message: "config has more than 1 MiB"}
	}
	if secret > limit {
		return &Problem{Reason: configv1.ReasonTooLarge, Message: "what is taken from Secrets has more than 1 MiB"}
	}
	if ByOwner(p) || !injectsEnv(p) || mountPath(p) != "" {
		return nil
	}
	for _, k := range c.Keys() {
		if !envName.MatchString(k) {
			return &Problem{Reason: configv1.ReasonInvalidKey, Message: fmt.Sprintf("key %s cannot be an environment variable: set inject.mountPath to have it as a file, or inject.env to false to have neither", k)}
		}
	}
	return nil
}
