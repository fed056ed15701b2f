package guardrails

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
)

// Subject is what the rules check of a claim, whatever its kind.
type Subject struct {
	environment appsv1.Environment

	// capped is where the claim's numbers of pods are capped, for messages, or "" if they are not.
	capped string

	images    []field[string]
	resources []field[*corev1.ResourceRequirements]
	replicas  []field[*int32]

	// namespace of the claim.
	namespace string

	// What a claim requests that an installation may restrict to a list.
	hosts, annotations, classes, tolerations, selectors, priorities, podLabels, podAnnotations []asked
}

// field is a value of a claim and its path below spec.
type field[T any] struct {
	path  string
	value T
}

// WebApp returns the subject of a WebApp in a namespace.
func WebApp(namespace string, s *appsv1.WebAppSpec) Subject {
	out := Subject{environment: s.Environment, namespace: namespace}
	out.ingress(s.Ingress)
	switch s.Environment {
	case appsv1.Production:
		out.capped = "in production"
	case "":
		// A claim that requests more must declare that it is not for production.
		out.capped = "where environment is not development or staging"
	case appsv1.Development, appsv1.Staging:
	}
	out.add(tier{workload: &s.Workload, replicas: s.Replicas, cronJobs: s.CronJobs, workers: s.Workers})
	return out
}

// EcommercePlatform returns the subject of an EcommercePlatform in a namespace: its tiers and its
// database.
func EcommercePlatform(namespace string, s *platformv1.EcommercePlatformSpec) Subject {
	out := Subject{environment: s.Environment, namespace: namespace}
	out.ingress(s.Ingress)
	if s.Environment == appsv1.Production {
		out.capped = "in production"
	}
	f, b := &s.Frontend, &s.Backend
	out.add(tier{path: "frontend.", workload: &f.Workload, replicas: f.Replicas})
	out.add(tier{path: "backend.", workload: &b.Workload, replicas: b.Replicas, cronJobs: b.CronJobs, workers: b.Workers})
	if d := s.Database; d != nil {
		out.resources = append(out.resources, field[*corev1.ResourceRequirements]{"database.resources", d.Resources})
		out.scheduling("database.", &d.PodOptions)
	}
	return out
}

// DatabaseCluster returns the subject of a DatabaseCluster in a namespace. It names no image, and
// its size has a cap of its own.
func DatabaseCluster(namespace string, s *appsv1.DatabaseClusterSpec) Subject {
	out := Subject{environment: s.Environment, namespace: namespace, resources: []field[*corev1.ResourceRequirements]{{"resources", s.Resources}}}
	out.scheduling("", &s.PodOptions)
	return out
}

// tier is a workload of a claim, with the cron jobs and workers that run its image.
type tier struct {
	path     string
	workload *appsv1.Workload
	replicas *int32
	cronJobs []appsv1.CronJob
	workers  []appsv1.Worker
}

func (s *Subject) add(t tier) {
	w := t.workload
	s.image(t.path+"image", w.Image)
	s.resources = append(s.resources, field[*corev1.ResourceRequirements]{t.path + "resources", w.Resources})
	s.pods(t.path, t.replicas, w.Autoscaling)
	s.scheduling(t.path, &w.PodOptions)
	for i := range w.InitContainers {
		s.container(t.path+"initContainers", &w.InitContainers[i])
	}
	for i := range w.Sidecars {
		s.container(t.path+"sidecars", &w.Sidecars[i].InitContainer)
	}
	for i := range t.cronJobs {
		s.limited(t.path+"cronJobs", t.cronJobs[i].Name, t.cronJobs[i].Resources)
	}
	for i := range t.workers {
		k := &t.workers[i]
		s.limited(t.path+"workers", k.Name, k.Resources)
		s.pods(item(t.path+"workers", k.Name)+".", k.Replicas, k.Autoscaling)
	}
}

// ingress adds the ingress of a claim, if it has one.
func (s *Subject) ingress(i *appsv1.Ingress) {
	if i == nil {
		return
	}
	s.hosts = append(s.hosts, asked{"ingress.host", "is", []string{i.Host}})
	if keys := slices.Sorted(maps.Keys(i.Annotations)); len(keys) > 0 {
		s.annotations = append(s.annotations, asked{"ingress.annotations", "sets", keys})
	}
	// A claim that may not set cert-manager's annotation may not set it by this field either.
	if i.TLS != nil && i.TLS.Issuer != "" {
		s.annotations = append(s.annotations, asked{"ingress.tls.issuer", "sets", []string{appsv1.AnnotationClusterIssuer}})
	}
	// Without a class it is the installation's.
	if i.ClassName != "" {
		s.classes = append(s.classes, asked{"ingress.className", "is", []string{i.ClassName}})
	}
	if named := i.Annotations[classAnnotation]; named != "" {
		s.classes = append(s.classes, asked{"ingress.annotations", "names class", []string{named}})
	}
	if g := i.Gateway; g != nil {
		s.classes = append(s.classes, asked{"ingress.gateway", "is", []string{cmp.Or(g.Namespace, s.namespace) + "/" + g.Name}})
	}
}

// classAnnotation names the class of an Ingress. It is older than the field.
const classAnnotation = "kubernetes.io/ingress.class"

// scheduling adds the options of pods at a path.
func (s *Subject) scheduling(path string, w *appsv1.PodOptions) {
	var taints, labels []string
	for i := range w.Tolerations {
		taints = append(taints, w.Tolerations[i].Key)
	}
	for k, v := range w.NodeSelector {
		labels = append(labels, k+"="+v)
	}
	slices.Sort(taints)
	slices.Sort(labels)
	if len(taints) > 0 {
		s.tolerations = append(s.tolerations, asked{path + "tolerations", "tolerates", taints})
	}
	if len(labels) > 0 {
		s.selectors = append(s.selectors, asked{path + "nodeSelector", "asks for", labels})
	}
	// Node affinity can express more than a list of labels could allow.
	if a := w.Affinity; a != nil && a.NodeAffinity != nil {
		s.selectors = append(s.selectors, asked{path + "affinity", "asks for", []string{"nodeAffinity instead of nodeSelector"}})
	}
	if keys := slices.Sorted(maps.Keys(w.PodLabels)); len(keys) > 0 {
		s.podLabels = append(s.podLabels, asked{path + "podLabels", "sets", keys})
	}
	if keys := slices.Sorted(maps.Keys(w.PodAnnotations)); len(keys) > 0 {
		s.podAnnotations = append(s.podAnnotations, asked{path + "podAnnotations", "sets", keys})
	}
	if w.PriorityClassName != "" {
		s.priorities = append(s.priorities, asked{path + "priorityClassName", "is", []string{w.PriorityClassName}})
	}
}

func (s *Subject) container(list string, c *appsv1.InitContainer) {
	s.image(item(list, c.Name)+".image", c.Image)
	s.limited(list, c.Name, c.Resources)
}

// image adds an image that a claim names. Without one it is the application's.
func (s *Subject) image(path string, i appsv1.Image) {
	if i != "" {
		s.images = append(s.images, field[string]{path, string(i)})
	}
}

// limited adds resources besides the application's own, if the claim sets them.
func (s *Subject) limited(list, name string, r *corev1.ResourceRequirements) {
	if r != nil {
		s.resources = append(s.resources, field[*corev1.ResourceRequirements]{item(list, name) + ".resources", r})
	}
}

// pods adds the numbers of pods that a claim requests, fixed or autoscaled.
func (s *Subject) pods(path string, replicas *int32, a *appsv1.Autoscaling) {
	if replicas != nil || a == nil {
		s.replicas = append(s.replicas, field[*int32]{path + "replicas", replicas})
	}
	if a != nil {
		s.replicas = append(s.replicas, field[*int32]{path + "autoscaling.maxReplicas", &a.MaxReplicas})
	}
}

// item returns the path of an item of a list, by its name.
func item(list, name string) string { return list + "[" + name + "]" }
