package webapp

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/profile"
)

// maxReplicas returns the largest number of replicas in the claim's environment. Without one it is
// that of production: a user who requests more must name another environment.
func maxReplicas(s *appsv1.WebAppSpec, p *profile.Profile) int32 {
	if s.Environment == "" {
		return profile.Of(appsv1.Production).MaxReplicas
	}
	return p.MaxReplicas
}

// validate repeats the checks of the XRD, for claims that bypass them, and adds
// those that need a parser.
func validate(s *appsv1.WebAppSpec, p *profile.Profile) error {
	if s.Image == "" {
		return compose.Invalidf("image is missing")
	}
	if err := build.CheckReplicas("", "", s.Replicas, s.Autoscaling, maxReplicas(s, p)); err != nil {
		return compose.Invalidf("%v", err)
	}
	if err := build.CheckConfig(s.Config); err != nil {
		return err
	}
	for _, w := range s.Workers {
		if err := build.CheckReplicas("workers "+w.Name+": ", "", w.Replicas, w.Autoscaling, maxReplicas(s, p)); err != nil {
			return compose.Invalidf("%v", err)
		}
	}
	for _, j := range s.CronJobs {
		if _, _, err := build.ParseSchedule(string(j.Schedule), j.TimeZone); err != nil {
			return compose.Invalidf("cronJobs %s: %v", j.Name, err)
		}
	}
	return CheckWorkload(&s.Workload, s.Environment)
}

// mostEnv is the largest size of the environment variables of a pod, in bytes: the API server stores
// objects of 1.5 MiB at most.
const mostEnv = 1 << 20

// validateEnv returns an error if the environment variables of a pod's containers are too large.
func validateEnv(w *appsv1.Workload) error {
	own := sizeOf(w.Env)
	total := own
	add := func(image appsv1.Image, env []corev1.EnvVar) {
		if total += sizeOf(env); image == "" {
			total += own
		}
	}
	for i := range w.InitContainers {
		add(w.InitContainers[i].Image, w.InitContainers[i].Env)
	}
	for i := range w.Sidecars {
		add(w.Sidecars[i].Image, w.Sidecars[i].Env)
	}
	if total <= mostEnv {
		return nil
	}
	return compose.Invalidf("env: with what initContainers and sidecars repeat, the variables of a pod have %d KiB, and may have %d: put large values into a ConfigMap, and mount it by volumes", total>>10, mostEnv>>10)
}

func sizeOf(env []corev1.EnvVar) int {
	total := 0
	for _, e := range env {
		total += len(e.Name) + len(e.Value)
	}
	return total
}

// CheckWorkload returns an error for a workload that cannot run as one pod in an environment.
func CheckWorkload(w *appsv1.Workload, env appsv1.Environment) error {
	if w.PodSecurity == appsv1.PodSecurityBaseline && env == appsv1.Production {
		return compose.Invalidf("podSecurity may be baseline only where environment is not production: use an image that runs as a user other than root")
	}
	if err := validateVolumes(w.Volumes); err != nil {
		return err
	}
	if err := validatePullSecrets(w.ImagePullSecrets); err != nil {
		return err
	}
	if err := validateEnv(w); err != nil {
		return err
	}
	return validateContainers(w)
}

// validatePullSecrets refuses a name that occurs twice, for which the API
// server would blame Crossplane.
func validatePullSecrets(secrets []corev1.LocalObjectReference) error {
	names := map[string]bool{}
	for _, s := range secrets {
		if names[s.Name] {
			return compose.Invalidf("imagePullSecrets: the name %s is there twice", s.Name)
		}
		names[s.Name] = true
	}
	return nil
}

func validateVolumes(volumes []appsv1.Volume) error {
	at := map[string]string{build.TmpDir: build.TmpVolume}
	names := map[string]bool{build.TmpVolume: true}
	for i := range volumes {
		v := &volumes[i]
		if names[v.Name] {
			return compose.Invalidf("volumes: the name %s is taken already", v.Name)
		}
		if !strings.HasPrefix(v.MountPath, "/") || v.MountPath == "/" || path.Clean(v.MountPath) != v.MountPath {
			return compose.Invalidf("volumes %s: mountPath must be an absolute path like /data, is %q", v.Name, v.MountPath)
		}
		if other, ok := at[v.MountPath]; ok {
			return compose.Invalidf("volumes %s: mountPath %s is that of volume %s already", v.Name, v.MountPath, other)
		}
		if fault := sourceFault(v); fault != "" {
			return compose.Invalidf("volumes %s: %s", v.Name, fault)
		}
		at[v.MountPath], names[v.Name] = v.Name, true
	}
	return nil
}

// sourceFault returns what is wrong with the source of a volume, or "".
func sourceFault(v *appsv1.Volume) string {
	sources := 0
	for _, is := range []bool{v.ConfigMap != nil, v.Secret != nil, v.EmptyDir != nil, v.PersistentVolumeClaim != nil} {
		if is {
			sources++
		}
	}
	switch {
	case sources != 1:
		return "exactly one of configMap, secret, emptyDir and persistentVolumeClaim is needed"
	case v.ConfigMap != nil && v.ConfigMap.Name == "":
		return "configMap.name is missing"
	case v.Secret != nil && v.Secret.SecretName == "":
		return "secret.secretName is missing"
	case v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "":
		return "persistentVolumeClaim.claimName is missing"
	}
	return ""
}

// validateContainers refuses containers that cannot be in one pod.
func validateContainers(w *appsv1.Workload) error {
	names := map[string]bool{"app": true, cron: true, portName: true, metricsPortName: true, migration: true, worker: true}
	take := func(field, name string) error {
		if names[name] {
			return compose.Invalidf("%s: the name %s is taken already", field, name)
		}
		names[name] = true
		return nil
	}
	for _, c := range w.InitContainers {
		if err := take("initContainers", c.Name); err != nil {
			return err
		}
	}
	port := int32(defaultPort)
	if w.Port != nil {
		port = *w.Port
	}
	ports := map[int32]string{port: "the application"}
	for _, c := range w.Sidecars {
		if err := take("sidecars", c.Name); err != nil {
			return err
		}
		if c.Port == nil {
			continue
		}
		if other, ok := ports[*c.Port]; ok {
			return compose.Invalidf("sidecars %s: port %d is that of %s already", c.Name, *c.Port, other)
		}
		ports[*c.Port] = "sidecar " + c.Name
	}
	return nil
}
