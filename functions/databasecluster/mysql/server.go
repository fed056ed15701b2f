package mysql

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/instance"
)

// supervisor is the name of the port of the supervisor's API.
const supervisor = "supervisor"

// fileExporter is the file of the exporter's options.
const fileExporter = "exporter.cnf"

// mounts returns the mounts of MySQL and its supervisor.
func mounts() []corev1.VolumeMount {
	return []corev1.VolumeMount{
		{Name: instance.DataVolume, MountPath: instance.MySQLVolumeDir},
		{Name: engine.ConfigVolume, MountPath: instance.MySQLConfigDir, ReadOnly: true},
		{Name: engine.TLSVolume, MountPath: instance.TLSDir, ReadOnly: true},
		build.TmpMount(),
		{Name: engine.RunVolume, MountPath: instance.MySQLRunDir},
	}
}

func (d cluster) server() corev1.Container {
	api := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(supervisor), Scheme: corev1.URISchemeHTTPS}}
	}
	args := []string{}
	if d.OwnAuthority {
		args = append(args, "--verify-host")
	}
	if !d.TLSRequired {
		args = append(args, "--allow-plaintext")
	}
	return corev1.Container{
		Name:    name,
		Image:   d.Image,
		Command: []string{instance.Program, instance.CommandMySQL},
		Args:    args,
		Env:     engine.Identity(d.Name(name)),
		Ports: []corev1.ContainerPort{
			{Name: name, ContainerPort: instance.MySQLPort},
			{Name: supervisor, ContainerPort: instance.MySQLSupervisorPort},
		},
		SecurityContext: build.ContainerSecurity(),
		VolumeMounts:    mounts(),
		// The supervisor serves at once. It may wait for other servers or for a decision, and a copy
		// of another server takes as long as it takes: neither is a reason to start it again.
		StartupProbe: &corev1.Probe{ProbeHandler: api(instance.LivenessPath), PeriodSeconds: 1, FailureThreshold: 120, TimeoutSeconds: 3},
		LivenessProbe: &corev1.Probe{
			ProbeHandler: api(instance.LivenessPath), PeriodSeconds: 10, FailureThreshold: 3, TimeoutSeconds: 5,
			TerminationGracePeriodSeconds: new(int64(5)),
		},
		ReadinessProbe: &corev1.Probe{ProbeHandler: api(instance.ReadinessPath), PeriodSeconds: 2, FailureThreshold: 3, TimeoutSeconds: 3},
	}
}

// exporter returns the container that exports MySQL's statistics to Prometheus, as a user that may read
// these and nothing else. It does not see the socket, over which every client is the superuser.
func exporter(image string) corev1.Container {
	return corev1.Container{
		Name:            engine.ExporterContainer,
		Image:           image,
		Command:         []string{"prometheus-mysqld-exporter"},
		Args:            []string{fmt.Sprintf("--web.listen-address=:%d", metricsPort), "--config.my-cnf=" + instance.MySQLConfigDir + "/" + fileExporter, "--collect.perf_schema.replication_group_members", "--collect.perf_schema.replication_group_member_stats"},
		Ports:           []corev1.ContainerPort{{Name: engine.ExporterContainer, ContainerPort: metricsPort}},
		Resources:       build.Resources("10m", "32Mi", "64Mi"),
		SecurityContext: build.ContainerSecurity(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: engine.ConfigVolume, MountPath: instance.MySQLConfigDir, ReadOnly: true},
			build.TmpMount(),
		},
	}
}

// exporterOptions returns the options by which the exporter connects, within the pod: the certificate
// is not verified.
func (d cluster) exporterOptions() string {
	return fmt.Sprintf("[client]\nuser=%s\npassword=%s\nhost=127.0.0.1\nport=%d\ntls=skip-verify\n", instance.UserMonitoring, d.Passwords[instance.KeyMonitoring], instance.MySQLPort)
}
