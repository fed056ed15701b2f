package postgresql

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/control"
)

// supervisor is the name of Patroni's port.
const supervisor = "patroni"

// runDir has PostgreSQL's socket.
const runDir = "/var/run/postgresql"

// mounts of PostgreSQL and of its manager, who starts its programs and looks at
// its files.
func mounts() []corev1.VolumeMount {
	return []corev1.VolumeMount{
		{Name: "data", MountPath: volumeDir},
		{Name: "config", MountPath: configDir, ReadOnly: true},
		{Name: "credentials", MountPath: secretDir, ReadOnly: true},
		{Name: engine.TLSVolume, MountPath: engine.TLSDir, ReadOnly: true},
		{Name: "tmp", MountPath: "/tmp"},
		{Name: "run", MountPath: runDir},
	}
}

func (d cluster) server(image string) corev1.Container {
	api := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(supervisor), Scheme: corev1.URISchemeHTTPS}}
	}
	return corev1.Container{
		Name:  name,
		Image: image,
		// Patroni reads all of the folder.
		Args: []string{configDir},
		Env: append(append(engine.Identity(d.Name(name)), controlEnv()...),
			corev1.EnvVar{Name: "PATRONI_NAME", Value: "$(POD_NAME)"},
			corev1.EnvVar{Name: "PATRONI_KUBERNETES_NAMESPACE", Value: "$(POD_NAMESPACE)"},
			corev1.EnvVar{Name: "PATRONI_KUBERNETES_POD_IP", Value: "$(POD_IP)"},
			corev1.EnvVar{Name: "PATRONI_POSTGRESQL_CONNECT_ADDRESS", Value: "$(POD_IP):5432"},
			corev1.EnvVar{Name: "PATRONI_RESTAPI_CONNECT_ADDRESS", Value: "$(POD_IP):8008"},
		),
		Ports: []corev1.ContainerPort{
			{Name: name, ContainerPort: port},
			{Name: supervisor, ContainerPort: apiPort},
		},
		SecurityContext: build.ContainerSecurity(),
		VolumeMounts:    append(mounts(), corev1.VolumeMount{Name: "shm", MountPath: "/dev/shm"}),
		// Patroni answers liveness as soon as it runs, also while a server
		// is restored for hours. It says no when its own loop stands still,
		// and a frozen server says nothing: such a one is better gone, since
		// others have taken over by then.
		StartupProbe: &corev1.Probe{ProbeHandler: api("/liveness"), PeriodSeconds: 1, FailureThreshold: 120, TimeoutSeconds: 3},
		LivenessProbe: &corev1.Probe{
			ProbeHandler: api("/liveness"), PeriodSeconds: 10, FailureThreshold: 3, TimeoutSeconds: 5,
			TerminationGracePeriodSeconds: new(int64(5)),
		},
		// A standby that is far behind serves no reads.
		ReadinessProbe: &corev1.Probe{ProbeHandler: api("/read-only?lag=" + strconv.Itoa(instance.LagBytes)), PeriodSeconds: 2, FailureThreshold: 3, TimeoutSeconds: 3},
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{instance.Program, "stop"}},
		}},
	}
}

// controlEnv has Patroni listen and ask with TLS. It is no part of the configuration's files,
// which reach pods that run: the probes of a pod from before have no TLS. Without a
// certificate of this cluster's servers a client may look and change nothing. Servers ask each
// other by address: insecure leaves out the name alone where there is a certificate to show
// (https://github.com/patroni/patroni/blob/v4.0.7/patroni/request.py#L122).
func controlEnv() []corev1.EnvVar {
	file := func(name string) string { return control.Dir + "/" + name }
	return []corev1.EnvVar{
		{Name: "PATRONI_RESTAPI_CERTFILE", Value: file(control.FileCertificate)},
		{Name: "PATRONI_RESTAPI_KEYFILE", Value: file(control.FileKey)},
		{Name: "PATRONI_RESTAPI_CAFILE", Value: file(control.FileAuthority)},
		{Name: "PATRONI_RESTAPI_VERIFY_CLIENT", Value: "optional"},
		{Name: "PATRONI_CTL_CERTFILE", Value: file(control.FileCertificate)},
		{Name: "PATRONI_CTL_KEYFILE", Value: file(control.FileKey)},
		{Name: "PATRONI_CTL_CACERT", Value: file(control.FileAuthority)},
		{Name: "PATRONI_CTL_INSECURE", Value: "true"},
	}
}

// exporter tells Prometheus about PostgreSQL, as a user who may read statistics
// and nothing else.
func exporter(image string, version number) corev1.Container {
	args := []string{"--web.listen-address=:9187"}
	if version.major >= 17 {
		// There is no such view before, and the exporter complains each time.
		args = append(args, "--collector.stat_checkpointer")
	}
	return corev1.Container{
		Name:    engine.ExporterContainer,
		Image:   image,
		Command: []string{"prometheus-postgres-exporter"},
		Args:    args,
		Env: []corev1.EnvVar{
			{Name: "DATA_SOURCE_NAME", Value: "host=/var/run/postgresql user=" + monitoringUser + " dbname=postgres sslmode=disable"},
		},
		Ports:           []corev1.ContainerPort{{Name: engine.ExporterContainer, ContainerPort: metricsPort}},
		Resources:       build.Resources("10m", "32Mi", "128Mi"),
		SecurityContext: build.ContainerSecurity(),
		VolumeMounts:    []corev1.VolumeMount{{Name: "run", MountPath: runDir}},
	}
}
