package podfailure

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// mounts returns the objects that must exist for volumes to be mounted, for example "Secret shop".
func mounts(volumes []corev1.Volume) []string {
	var out []string
	add := func(kind, name string, optional *bool) {
		if name != "" && (optional == nil || !*optional) {
			out = append(out, kind+" "+name)
		}
	}
	for _, v := range volumes {
		if c := v.PersistentVolumeClaim; c != nil {
			add("PersistentVolumeClaim", c.ClaimName, nil)
		}
		if m := v.ConfigMap; m != nil {
			add("ConfigMap", m.Name, m.Optional)
		}
		if s := v.Secret; s != nil {
			add("Secret", s.SecretName, s.Optional)
		}
		if v.Projected == nil {
			continue
		}
		for _, p := range v.Projected.Sources {
			if p.ConfigMap != nil {
				add("ConfigMap", p.ConfigMap.Name, p.ConfigMap.Optional)
			}
			if p.Secret != nil {
				add("Secret", p.Secret.Name, p.Secret.Optional)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
