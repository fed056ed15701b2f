package appconfig

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// References returns the names of the ConfigMaps and Secrets that a pod refers to: sorted, each
// once.
func References(spec *corev1.PodSpec) []string {
	out := map[string]bool{}
	walk(spec, func(name string, _ bool) { out[name] = true })
	return slices.Sorted(maps.Keys(out))
}

// Secrets returns the names of the Secrets that a pod refers to: sorted, each once.
func Secrets(spec *corev1.PodSpec) []string {
	out := map[string]bool{}
	walk(spec, func(name string, secret bool) {
		if secret {
			out[name] = true
		}
	})
	for _, r := range spec.ImagePullSecrets {
		if r.Name != "" {
			out[r.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// walk visits each reference of a pod but imagePullSecrets, with whether it is one to a Secret.
func walk(spec *corev1.PodSpec, visit func(name string, secret bool)) {
	add := func(name string, secret bool) {
		if name != "" {
			visit(name, secret)
		}
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil {
				add(e.ValueFrom.ConfigMapKeyRef.Name, false)
			}
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				add(e.ValueFrom.SecretKeyRef.Name, true)
			}
		}
		for _, e := range c.EnvFrom {
			if e.ConfigMapRef != nil {
				add(e.ConfigMapRef.Name, false)
			}
			if e.SecretRef != nil {
				add(e.SecretRef.Name, true)
			}
		}
	}
	for n := range spec.Volumes {
		walkVolume(&spec.Volumes[n], add)
	}
}

func walkVolume(v *corev1.Volume, visit func(name string, secret bool)) {
	if v.ConfigMap != nil {
		visit(v.ConfigMap.Name, false)
	}
	if v.Secret != nil {
		visit(v.Secret.SecretName, true)
	}
	if v.Projected == nil {
		return
	}
	for _, s := range v.Projected.Sources {
		if s.ConfigMap != nil {
			visit(s.ConfigMap.Name, false)
		}
		if s.Secret != nil {
			visit(s.Secret.Name, true)
		}
	}
}

// sources returns the names of the ConfigMaps and Secrets of a volume, in its order.
func sources(v *corev1.Volume) []string {
	var out []string
	walkVolume(v, func(name string, _ bool) { out = append(out, name) })
	return out
}

// Run is how a pod template uses the configuration of an AppConfig.
type Run struct {
	// Bundle is the bundle that the template runs, or "".
	Bundle string

	// Annotated is true if the bundle is that of the annotation.
	Annotated bool

	// Reader is true if the template refers to the stable name.
	Reader bool
}

// RunOf returns how a pod template uses the configuration of the AppConfig of that name.
func RunOf(appConfig, application string, annotations map[string]string, spec *corev1.PodSpec) Run {
	refs := References(spec)
	r := Run{Reader: slices.Contains(refs, StableName(application))}
	if b := annotations[Annotation(appConfig)]; b != "" {
		r.Bundle, r.Annotated = b, true
		return r
	}
	for _, name := range refs {
		if IsBundle(application, name) {
			r.Bundle = name
		}
	}
	return r
}
