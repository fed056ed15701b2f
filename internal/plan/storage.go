package plan

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// secret returns the effects of a Secret that is generated, or whose passwords or keys change.
// Values are never printed. The deletion of a Secret has no effect of its own: what used it is
// deleted too.
func (f *forecast) secret(p pair) []Effect {
	if p.Action == Create {
		return []Effect{p.effect(Generates, "%s is generated", p.Object)}
	}
	var drawn []string
	for _, field := range p.Fields {
		key := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(field.Path, "data."), "data["), "]")
		if key == "password" || strings.HasSuffix(key, "-password") || strings.HasSuffix(key, ".key") {
			drawn = append(drawn, key)
		}
	}
	if len(drawn) == 0 {
		return nil
	}
	return []Effect{p.effect(Rotates, "%s has another %s: what reads it once has to read it again", p.Object, strings.Join(drawn, ", "))}
}

// backup returns the effect of the deletion of a Backup.
func (f *forecast) backup(p pair) []Effect {
	if p.Action != Delete {
		return nil
	}
	e := p.effect(Unprotects, "%s is deleted: no backups are made any more; those that were made stay", p.Object)
	e.Warning = true
	return []Effect{e}
}

// usage returns the effect of the deletion of a Usage, which protected a claim from deletion.
func (f *forecast) usage(p pair) []Effect {
	if p.Action != Delete {
		return nil
	}
	e := p.effect(Unprotects, "%s is deleted: the deletion of %s is not refused any more", p.Object, p.Owner)
	e.Warning = true
	return []Effect{e}
}

// keepsVolumes reports whether the volumes of a StatefulSet stay when it is deleted.
func keepsVolumes(set *unstructured.Unstructured) bool {
	policy, _, _ := unstructured.NestedString(set.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	return policy != "Delete"
}
