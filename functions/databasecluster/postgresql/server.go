package postgresql

import (
	"fmt"
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

// mounts returns the mounts of PostgreSQL and of its manager, which starts its
// programs and reads its files.
func mounts() []corev1.VolumeMount {
	return []corev1.VolumeMount{
		{Name: instance.DataVolume, MountPath: instance.VolumeDir},
		{Name: engine.ConfigVolume, MountPath: instance.PatroniDir, ReadOnly: true},
		{Name: engine.CredentialsVolume, MountPath: instance.CredentialsDir, ReadOnly: true},
		{Name: engine.TLSVolume, MountPath: instance.TLSDir, ReadOnly: true},
		build.TmpMount(),
		{Name: engine.RunVolume, MountPath: instance.SocketDir},
	}
}

func (d cluster) server(image string) corev1.Container {
	api := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(supervisor), Scheme: corev1.URISchemeHTTPS}}
	}
	return corev1.Container{
		Name:  name,
		Image: image,
		// Patroni reads all files of the folder.
		Args: []string{instance.PatroniDir},
		Env: append(append(engine.Identity(d.Name(name)), controlEnv()...),
			corev1.EnvVar{Name: "PATRONI_NAME", Value: ref(instance.PodVariable)},
			corev1.EnvVar{Name: "PATRONI_KUBERNETES_NAMESPACE", Value: ref(instance.NamespaceVariable)},
			corev1.EnvVar{Name: "PATRONI_KUBERNETES_POD_IP", Value: ref(instance.AddressVariable)},
			corev1.EnvVar{Name: "PATRONI_POSTGRESQL_CONNECT_ADDRESS", Value: fmt.Sprintf("%s:%d", ref(instance.AddressVariable), instance.PostgreSQLPort)},
			corev1.EnvVar{Name: "PATRONI_RESTAPI_CONNECT_ADDRESS", Value: fmt.Sprintf("%s:%d", ref(instance.AddressVariable), instance.PatroniPort)},
		),
		Ports: []corev1.ContainerPort{
			{Name: name, ContainerPort: instance.PostgreSQLPort},
			{Name: supervisor, ContainerPort: instance.PatroniPort},
		},
		SecurityContext: build.ContainerSecurity(),
		VolumeMounts:    append(mounts(), corev1.VolumeMount{Name: engine.MemoryVolume, MountPath: "/dev/shm"}),
		// /liveness succeeds as soon as Patroni runs, also while a server is restored for hours. It
		// fails when Patroni's own loop is stuck, and times out on a frozen server. Such a server
		// is ended quickly, since others have taken over by then.
		StartupProbe: &corev1.Probe{ProbeHandler: api(instance.LivenessPath), PeriodSeconds: 1, FailureThreshold: 120, TimeoutSeconds: 3},
		LivenessProbe: &corev1.Probe{
			ProbeHandler: api(instance.LivenessPath), PeriodSeconds: 10, FailureThreshold: 3, TimeoutSeconds: 5,
			TerminationGracePeriodSeconds: new(int64(5)),
		},
		// A standby that is far behind serves no reads.
		ReadinessProbe: &corev1.Probe{ProbeHandler: api("/read-only?lag=" + strconv.Itoa(instance.LagBytes)), PeriodSeconds: 2, FailureThreshold: 3, TimeoutSeconds: 3},
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{instance.Program, instance.CommandStop}},
		}},
	}
}

// ref refers to another variable of a container's environment.
func ref(variable string) string { return "$(" + variable + ")" }

// controlEnv returns the environment by which Patroni serves and connects with TLS. It is not in
// the files of the configuration, since these change in running pods, too, and the probes of an
// older pod have no TLS. A client without a certificate of this cluster's servers may only read.
// Servers connect to each other by address: for a client with a certificate, insecure only skips
// the server's name (https://github.com/patroni/patroni/blob/v4.0.7/patroni/request.py#L122).
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

// exporterUser and exporterUID are the user of the exporter in its container, which PostgreSQL finds
// out by the socket (peer): one of Debian's, and not the server's own, which may be the superuser.
const (
	exporterUser = "nobody"
	exporterUID  = 65534
)

// exporter returns the container that exports PostgreSQL's statistics to Prometheus, as a user that
// may read these and nothing else.
func exporter(image string, version number) corev1.Container {
	args := []string{fmt.Sprintf("--web.listen-address=:%d", metricsPort)}
	if version.major >= 17 {
		// Older versions do not have this view, and the exporter would log an error each time.
		args = append(args, "--collector.stat_checkpointer")
	}
	security := build.ContainerSecurity()
	security.RunAsUser = new(int64(exporterUID))
	return corev1.Container{
		Name:    engine.ExporterContainer,
		Image:   image,
		Command: []string{"prometheus-postgres-exporter"},
		Args:    args,
		Env: []corev1.EnvVar{
			{Name: "DATA_SOURCE_NAME", Value: "host=" + instance.SocketDir + " user=" + instance.UserMonitoring + " dbname=postgres sslmode=disable"},
		},
		Ports:           []corev1.ContainerPort{{Name: engine.ExporterContainer, ContainerPort: metricsPort}},
		Resources:       build.Resources("10m", "32Mi", "128Mi"),
		SecurityContext: security,
		VolumeMounts:    []corev1.VolumeMount{{Name: engine.RunVolume, MountPath: instance.SocketDir}},
	}
}
