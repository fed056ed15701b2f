package converge

// Merge merges what is applied now into what is live, and removes what was applied before and is
// not applied now, as a server-side apply does.
func Merge(live, before, now map[string]any) map[string]any { return merge(live, before, now) }

func merge(live, before, now map[string]any) map[string]any {
	out := make(map[string]any, len(live))
	for k, v := range live {
		_, was := before[k]
		_, is := now[k]
		if is || !was || isDefault(k, v) {
			out[k] = v
		}
	}
	for k, v := range now {
		out[k] = mergeValue(k, out[k], before[k], v)
	}
	return out
}

// defaults are those that an API server fills in and that managed fields count as applied: within
// values that are owned as a whole, like a fieldRef, and in the keys of a list's elements.
var defaults = map[string]string{"protocol": "TCP", "apiVersion": "v1"}

func isDefault(field string, v any) bool {
	text, ok := v.(string)
	return ok && text != "" && defaults[field] == text
}

func mergeValue(field string, live, before, now any) any {
	switch is := now.(type) {
	case map[string]any:
		at, ok := live.(map[string]any)
		if !ok {
			return now
		}
		was, _ := before.(map[string]any)
		return merge(at, was, is)
	case []any:
		at, ok := live.([]any)
		keys := KeysOf(field, is)
		if !ok {
			return now
		}
		if keys == nil || KeysOf(field, at) == nil && len(at) > 0 {
			return filled(at, is)
		}
		was, _ := before.([]any)
		return mergeList(field, keys, at, was, is)
	default:
		return now
	}
}

// filled returns a list that is owned as a whole, with the defaults of the live one.
func filled(live, now []any) []any {
	if len(live) != len(now) {
		return now
	}
	out := make([]any, 0, len(now))
	for i := range now {
		out = append(out, fill(live[i], now[i]))
	}
	return out
}

func fill(live, now any) any {
	switch is := now.(type) {
	case map[string]any:
		at, ok := live.(map[string]any)
		if !ok {
			return now
		}
		out := make(map[string]any, len(is))
		for k, v := range is {
			out[k] = fill(at[k], v)
		}
		for k, v := range at {
			if _, set := is[k]; !set && isDefault(k, v) {
				out[k] = v
			}
		}
		return out
	case []any:
		if at, ok := live.([]any); ok {
			return filled(at, is)
		}
	}
	return now
}

// mergeList merges lists of elements that have keys: those that others have added stay, and those
// that exist keep their places.
func mergeList(field string, keys []string, live, before, now []any) []any {
	out := make([]any, 0, len(live)+len(now))
	for _, e := range live {
		is := Element(keys, now, e)
		was := Element(keys, before, e)
		switch {
		case is != nil:
			out = append(out, mergeValue(field, e, was, is))
		case was == nil:
			out = append(out, e)
		}
	}
	for _, e := range now {
		if Element(keys, live, e) == nil {
			out = append(out, e)
		}
	}
	return out
}

// listKeys are the keys that identify the elements of a list, by the field that holds it: its
// x-kubernetes-list-map-keys in Kubernetes' OpenAPI, without those that have a default. Lists of
// other fields are owned as a whole. The key of a port is the field that holds its number.
var listKeys = map[string][][]string{
	"containers":                {{"name"}},
	"initContainers":            {{"name"}},
	"volumes":                   {{"name"}},
	"env":                       {{"name"}},
	"imagePullSecrets":          {{"name"}},
	"volumeMounts":              {{"mountPath"}},
	"ports":                     {{"containerPort"}, {"port"}},
	"topologySpreadConstraints": {{"topologyKey", "whenUnsatisfiable"}},
	"ownerReferences":           {{"uid"}},
	"hostAliases":               {{"ip"}},
}

// KeysOf returns the fields that are the key of each element of a list that a field holds, or nil
// if the list is owned as a whole or an element lacks a key.
func KeysOf(field string, list []any) []string {
	for _, keys := range listKeys[field] {
		if haveAll(keys, list) {
			return keys
		}
	}
	return nil
}

func haveAll(keys []string, list []any) bool {
	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			return false
		}
		for _, k := range keys {
			if m[k] == nil {
				return false
			}
		}
	}
	return true
}

// Element returns the element of a list that has the keys of e, or nil.
func Element(keys []string, list []any, e any) any {
	want, ok := e.(map[string]any)
	if !ok {
		return nil
	}
	for _, candidate := range list {
		m, ok := candidate.(map[string]any)
		if !ok {
			continue
		}
		same := protocolOf(m) == protocolOf(want)
		for _, k := range keys {
			same = same && Equal(m[k], want[k])
		}
		if same {
			return candidate
		}
	}
	return nil
}

// protocolOf returns the protocol of a port: several may use one number.
func protocolOf(m map[string]any) any {
	if p, ok := m["protocol"]; ok {
		return p
	}
	return defaults["protocol"]
}
