package plan

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// secret that is drawn, or drawn anew. Values are never printed; one that goes does so
// with what used it.
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

// backup that watches, or does so no more.
func (f *forecast) backup(p pair) []Effect {
	if p.Action != Delete {
		return nil
	}
	e := p.effect(Unprotects, "%s is deleted: no backups are made any more; those that were made stay", p.Object)
	e.Warning = true
	return []Effect{e}
}

// usage that protected a claim from its deletion.
func (f *forecast) usage(p pair) []Effect {
	if p.Action != Delete {
		return nil
	}
	e := p.effect(Unprotects, "%s is deleted: the deletion of %s is not refused any more", p.Object, p.Owner)
	e.Warning = true
	return []Effect{e}
}

// keepsVolumes tells whether the volumes of a StatefulSet outlive it.
func keepsVolumes(set *unstructured.Unstructured) bool {
	policy, _, _ := unstructured.NestedString(set.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	return policy != "Delete"
}
