package appconfig

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// Injection adds a bundle to a pod template.
type Injection struct {
	// AppConfig is the name of the AppConfig.
	AppConfig string

	// Params are the parameters of the AppConfig.
	Params *configv1.AppConfigParameters

	// Bundle is the name of the bundle, and Content its content.
	Bundle  string
	Content Content

	// Containers are the names of the containers that get the bundle; none means the first one.
	Containers []string
}

// Plan is how an injection changes one pod template.
type Plan struct {
	// Template holds the fields to apply, those of this AppConfig alone.
	Template map[string]any

	// Current is true if the template has these fields already.
	Current bool

	// Refusal is the reason why the injection is not possible, or "".
	Refusal string
}

// Annotate plans only the annotation: the template refers to the stable name, and has to change
// only so that its pods are replaced.
func (i Injection) Annotate(annotations map[string]string) Plan {
	return Plan{
		Template: map[string]any{"metadata": map[string]any{"annotations": map[string]any{Annotation(i.AppConfig): i.Bundle}}},
		Current:  annotations[Annotation(i.AppConfig)] == i.Bundle,
	}
}

// Into plans the injection into a pod template.
func (i Injection) Into(annotations map[string]string, spec *corev1.PodSpec) Plan {
	p := i.Annotate(annotations)
	names := i.Containers
	if len(names) == 0 && len(spec.Containers) > 0 {
		names = []string{spec.Containers[0].Name}
	}
	for _, n := range names {
		if !slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == n }) {
			p.Refusal = "has no container " + n
			return p
		}
	}
	var containers []any
	for _, c := range spec.Containers {
		if !slices.Contains(names, c.Name) {
			p.Current = p.Current && len(i.unwanted(c, nil)) == 0
			continue
		}
		fields, current, refusal := i.container(c)
		if refusal != "" {
			p.Refusal = refusal
			return p
		}
		p.Current = p.Current && current
		if len(fields) > 1 {
			containers = append(containers, fields)
		}
	}
	pod := map[string]any{}
	if len(containers) > 0 {
		pod["containers"] = containers
	}
	if mountPath(i.Params) != "" {
		if v := volume(spec, i.volume()); v != nil && !i.isOurs(v) {
			p.Refusal = "has a volume " + i.volume() + " of its own"
			return p
		}
		pod["volumes"] = []any{i.volumeFields()}
	}
	p.Current = p.Current && i.volumeIsCurrent(spec)
	if len(pod) > 0 {
		p.Template["spec"] = pod
	}
	return p
}

// container returns the fields to apply to a container, whether it has them already, and the reason
// why that is not possible, or "".
func (i Injection) container(c corev1.Container) (fields map[string]any, current bool, refusal string) {
	fields, current = map[string]any{"name": c.Name}, true
	var env []any
	wanted := map[string]bool{}
	for _, key := range i.variables() {
		have := variable(c, key)
		if have != nil && i.refersToUs(have) == "" {
			// The container's own variable takes precedence.
			continue
		}
		wanted[key] = true
		want := i.source(key)
		current = current && have != nil && sameSource(have.ValueFrom, want)
		env = append(env, map[string]any{"name": key, "valueFrom": sourceFields(want)})
	}
	if len(env) > 0 {
		fields["env"] = env
	}
	current = current && len(i.unwanted(c, wanted)) == 0

	path := mountPath(i.Params)
	for _, m := range c.VolumeMounts {
		if m.Name == i.volume() && m.MountPath != path {
			current = false
		}
	}
	if path == "" {
		return fields, current, ""
	}
	mounted := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path })
	if mounted >= 0 && c.VolumeMounts[mounted].Name != i.volume() {
		return nil, false, fmt.Sprintf("has volume %s at %s", c.VolumeMounts[mounted].Name, path)
	}
	current = current && mounted >= 0
	fields["volumeMounts"] = []any{map[string]any{"name": i.volume(), "mountPath": path, "readOnly": true}}
	return fields, current, ""
}

// variables returns the keys that become environment variables.
func (i Injection) variables() []string {
	if !injectsEnv(i.Params) {
		return nil
	}
	return slices.DeleteFunc(i.Content.Keys(), func(k string) bool { return !envName.MatchString(k) })
}

// source returns the source of a key.
func (i Injection) source(key string) *corev1.EnvVarSource {
	if _, ok := i.Content.Secret[key]; ok {
		return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: i.Bundle}, Key: key}}
	}
	return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: i.Bundle}, Key: key}}
}

func sourceFields(s *corev1.EnvVarSource) map[string]any {
	if s.SecretKeyRef != nil {
		return map[string]any{"secretKeyRef": map[string]any{"name": s.SecretKeyRef.Name, "key": s.SecretKeyRef.Key}}
	}
	return map[string]any{"configMapKeyRef": map[string]any{"name": s.ConfigMapKeyRef.Name, "key": s.ConfigMapKeyRef.Key}}
}

// sameSource reports whether a variable has the source that is wanted.
func sameSource(have, want *corev1.EnvVarSource) bool {
	if have == nil || (have.SecretKeyRef == nil) != (want.SecretKeyRef == nil) || (have.ConfigMapKeyRef == nil) != (want.ConfigMapKeyRef == nil) {
		return false
	}
	if want.SecretKeyRef != nil {
		return have.SecretKeyRef.Name == want.SecretKeyRef.Name && have.SecretKeyRef.Key == want.SecretKeyRef.Key
	}
	return have.ConfigMapKeyRef.Name == want.ConfigMapKeyRef.Name && have.ConfigMapKeyRef.Key == want.ConfigMapKeyRef.Key
}

// refersToUs returns the bundle of the application that a variable comes from, or "".
func (i Injection) refersToUs(e *corev1.EnvVar) string {
	if e.ValueFrom == nil {
		return ""
	}
	name := ""
	if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
		name = r.Name
	}
	if r := e.ValueFrom.SecretKeyRef; r != nil {
		name = r.Name
	}
	if !IsBundle(i.Params.Application, name) {
		return ""
	}
	return name
}

// unwanted returns the variables of a container that come from a bundle and should not.
func (i Injection) unwanted(c corev1.Container, wanted map[string]bool) []string {
	var out []string
	for n := range c.Env {
		if e := &c.Env[n]; !wanted[e.Name] && i.refersToUs(e) != "" {
			out = append(out, e.Name)
		}
	}
	return out
}

func variable(c corev1.Container, name string) *corev1.EnvVar {
	for n := range c.Env {
		if c.Env[n].Name == name {
			return &c.Env[n]
		}
	}
	return nil
}

func (i Injection) volume() string { return VolumeName(i.Params.Application) }

// volumeFields returns the fields of one volume with all keys, so that files from the ConfigMap and
// the Secret change together.
func (i Injection) volumeFields() map[string]any {
	sources := []any{map[string]any{"configMap": map[string]any{"name": i.Bundle}}}
	if len(i.Content.Secret) > 0 {
		sources = append(sources, map[string]any{"secret": map[string]any{"name": i.Bundle}})
	}
	return map[string]any{"name": i.volume(), "projected": map[string]any{"sources": sources}}
}

func volume(spec *corev1.PodSpec, name string) *corev1.Volume {
	for n := range spec.Volumes {
		if spec.Volumes[n].Name == name {
			return &spec.Volumes[n]
		}
	}
	return nil
}

// isOurs reports whether a volume is of a bundle.
func (i Injection) isOurs(v *corev1.Volume) bool {
	return v.Projected != nil && slices.ContainsFunc(sources(v), func(name string) bool { return IsBundle(i.Params.Application, name) })
}

func (i Injection) volumeIsCurrent(spec *corev1.PodSpec) bool {
	v := volume(spec, i.volume())
	if mountPath(i.Params) == "" {
		return v == nil || !i.isOurs(v)
	}
	if v == nil {
		return false
	}
	want := []string{i.Bundle}
	if len(i.Content.Secret) > 0 {
		want = append(want, i.Bundle)
	}
	return slices.Equal(sources(v), want)
}

// Mentions reports whether raw JSON, such as a ControllerRevision's, contains a name. It may find
// one that is no reference, but never misses one.
func Mentions(raw []byte, name string) bool { return strings.Contains(string(raw), `"`+name+`"`) }
