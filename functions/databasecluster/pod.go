package databasecluster

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// tlsVolume of a pod holds its server's certificate.
const tlsVolume = "tls"

// Names of the containers beside PostgreSQL's.
const (
	managerContainer  = "instance"
	exporterContainer = "metrics"
)

func (d *cluster) pod(version number) corev1.PodSpec {
	image := d.settings.ImageRegistry + "/postgresql:" + version.tag()
	pod := corev1.PodSpec{
		ServiceAccountName: d.Name(postgresql),
		// Patroni keeps its state in the cluster, so its pods need the token.
		AutomountServiceAccountToken: new(true),
		EnableServiceLinks:           new(false),
		SecurityContext:              build.PodSecurity(postgresUser, postgresUser),
		// A primary hands over and writes a checkpoint before it goes.
		TerminationGracePeriodSeconds: new(int64(120)),
		// As a sidecar the manager is there before PostgreSQL, to grow its
		// volume, and after it, while PostgreSQL stops.
		InitContainers: []corev1.Container{d.manager(image)},
		Containers:     []corev1.Container{d.server(image)},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				DefaultMode: new(int32(0o440)),
				Sources: []corev1.VolumeProjection{
					{ConfigMap: &corev1.ConfigMapProjection{
						LocalObjectReference: corev1.LocalObjectReference{Name: d.Name(postgresql)},
						Items:                []corev1.KeyToPath{{Key: fileConfig, Path: fileConfig}, {Key: filePeers, Path: filePeers}},
					}},
					{Secret: &corev1.SecretProjection{
						LocalObjectReference: corev1.LocalObjectReference{Name: d.Name(credentials)},
						Items:                []corev1.KeyToPath{{Key: fileCredentials, Path: fileCredentials}},
					}},
				},
			}}},
			secretVolume("credentials", d.Name(credentials), keyRestAPI),
			secretVolume(tlsVolume, d.tlsSecret(), keyCertificate, keyPrivate, keyAuthority),
			build.Scratch("tmp", corev1.StorageMediumDefault),
			build.Scratch("run", corev1.StorageMediumDefault),
			build.Scratch("shm", corev1.StorageMediumMemory),
		},
	}
	if d.monitored() {
		pod.Containers = append(pod.Containers, d.exporter(image, version))
	}
	if d.needsRepository() {
		d.mountRepository(&pod)
	}
	if d.profile.HighlyAvailable {
		pod.TopologySpreadConstraints = build.Spread(d.Scope, postgresql)
		pod.Affinity = build.AntiAffinity(d.Scope, postgresql)
	}
	return pod
}

// mountRepository mounts what archiving, backups and a restore need, and adds
// pgBackRest's server.
func (d *cluster) mountRepository(pod *corev1.PodSpec) {
	var files []corev1.KeyToPath
	manager, server := &pod.InitContainers[0], &pod.Containers[0]
	if d.backup.enabled {
		files = []corev1.KeyToPath{
			{Key: pgbackrest.FileConfig, Path: pgbackrest.FileConfig},
			{Key: instance.BackupFile, Path: instance.BackupFile},
		}
	}
	pod.Volumes = append(pod.Volumes, d.repositoryVolume(d.Name(postgresql), files...))
	mount := corev1.VolumeMount{Name: "repository", MountPath: backup.RepositoryDir, ReadOnly: true}
	manager.VolumeMounts, server.VolumeMounts = append(manager.VolumeMounts, mount), append(server.VolumeMounts, mount)
	if d.spec.RestoreFrom != nil {
		// It goes once it has been read.
		v := secretVolume(source, d.Name(source))
		v.Secret.Optional = new(true)
		pod.Volumes = append(pod.Volumes, v)
		server.VolumeMounts = append(server.VolumeMounts, corev1.VolumeMount{Name: source, MountPath: instance.RestoreDir, ReadOnly: true})
	}
	if !d.backup.enabled {
		return
	}
	d.mountStore(pod, manager, server)
	pod.InitContainers = append(pod.InitContainers, d.backupServer(server.Image))
}

// backupServer lets the pods that make backups read the server's files, by a
// certificate. It comes before PostgreSQL and is no part of its being ready.
func (d *cluster) backupServer(image string) corev1.Container {
	return corev1.Container{
		Name:            backups,
		Image:           image,
		Command:         []string{instance.Program, "serve"},
		Ports:           []corev1.ContainerPort{{Name: backups, ContainerPort: repositoryPort}},
		RestartPolicy:   new(corev1.ContainerRestartPolicyAlways),
		Resources:       small("10m", "32Mi", "256Mi"),
		SecurityContext: build.ContainerSecurity(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "data", MountPath: volumeDir, ReadOnly: true},
			{Name: "repository", MountPath: backup.RepositoryDir, ReadOnly: true},
			{Name: "tmp", MountPath: "/tmp"},
			{Name: "run", MountPath: "/var/run/postgresql"},
		},
	}
}

// secretVolume has only the keys that are needed.
func secretVolume(name, secret string, keys ...string) corev1.Volume {
	v := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret,
		// PostgreSQL takes a private key that root owns and its group reads.
		DefaultMode: new(int32(0o440)),
	}}}
	for _, k := range keys {
		v.Secret.Items = append(v.Secret.Items, corev1.KeyToPath{Key: k, Path: k})
	}
	return v
}

// identity tells a container who it is.
func (d *cluster) identity() []corev1.EnvVar {
	return []corev1.EnvVar{
		build.FromField("POD_NAME", "metadata.name"),
		build.FromField("POD_NAMESPACE", "metadata.namespace"),
		build.FromField("POD_IP", "status.podIP"),
		{Name: instance.ScopeVariable, Value: d.Name(postgresql)},
	}
}

// mounts of PostgreSQL and of its manager, who starts its programs and looks at
// its files.
func mounts() []corev1.VolumeMount {
	return []corev1.VolumeMount{
		{Name: "data", MountPath: volumeDir},
		{Name: "config", MountPath: configDir, ReadOnly: true},
		{Name: "credentials", MountPath: secretDir, ReadOnly: true},
		{Name: tlsVolume, MountPath: tlsDir, ReadOnly: true},
		{Name: "tmp", MountPath: "/tmp"},
		{Name: "run", MountPath: "/var/run/postgresql"},
	}
}

func (d *cluster) server(image string) corev1.Container {
	api := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("patroni")}}
	}
	c := corev1.Container{
		Name:  postgresql,
		Image: image,
		// Patroni reads all of the folder.
		Args: []string{configDir},
		Env: append(d.identity(),
			corev1.EnvVar{Name: "PATRONI_NAME", Value: "$(POD_NAME)"},
			corev1.EnvVar{Name: "PATRONI_KUBERNETES_NAMESPACE", Value: "$(POD_NAMESPACE)"},
			corev1.EnvVar{Name: "PATRONI_KUBERNETES_POD_IP", Value: "$(POD_IP)"},
			corev1.EnvVar{Name: "PATRONI_POSTGRESQL_CONNECT_ADDRESS", Value: "$(POD_IP):5432"},
			corev1.EnvVar{Name: "PATRONI_RESTAPI_CONNECT_ADDRESS", Value: "$(POD_IP):8008"},
		),
		Ports: []corev1.ContainerPort{
			{Name: "postgresql", ContainerPort: port},
			{Name: "patroni", ContainerPort: apiPort},
		},
		Resources:       d.profile.Database,
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
		// A standby that is far behind is nobody's to read from.
		ReadinessProbe: &corev1.Probe{ProbeHandler: api("/read-only?lag=" + strconv.Itoa(instance.LagBytes)), PeriodSeconds: 2, FailureThreshold: 3, TimeoutSeconds: 3},
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{instance.Program, "stop"}},
		}},
	}
	if d.spec.Resources != nil {
		c.Resources = *d.spec.Resources
	}
	return c
}

func (d *cluster) manager(image string) corev1.Container {
	api := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(managerContainer)}}
	}
	return corev1.Container{
		Name:            managerContainer,
		Image:           image,
		Command:         []string{instance.Program, "run"},
		Env:             d.identity(),
		Ports:           []corev1.ContainerPort{{Name: managerContainer, ContainerPort: instancePort}},
		RestartPolicy:   new(corev1.ContainerRestartPolicyAlways),
		Resources:       small("10m", "32Mi", "128Mi"),
		SecurityContext: build.ContainerSecurity(),
		VolumeMounts:    mounts(),
		// It may wait for other servers, or for a decision, for as long as that
		// takes: it is not restarted for it, which would take ever longer.
		StartupProbe:  &corev1.Probe{ProbeHandler: api("/started"), PeriodSeconds: 1, FailureThreshold: 24 * 60 * 60, TimeoutSeconds: 3},
		LivenessProbe: &corev1.Probe{ProbeHandler: api("/healthz"), PeriodSeconds: 10, FailureThreshold: 6, TimeoutSeconds: 5},
	}
}

// exporter tells Prometheus about PostgreSQL, as a user who may read statistics
// and nothing else.
func (d *cluster) exporter(image string, version number) corev1.Container {
	args := []string{"--web.listen-address=:9187"}
	if version.major >= 17 {
		// There is no such view before, and the exporter complains each time.
		args = append(args, "--collector.stat_checkpointer")
	}
	return corev1.Container{
		Name:    exporterContainer,
		Image:   image,
		Command: []string{"prometheus-postgres-exporter"},
		Args:    args,
		Env: []corev1.EnvVar{
			{Name: "DATA_SOURCE_NAME", Value: "host=/var/run/postgresql user=" + monitoringUser + " dbname=postgres sslmode=disable"},
		},
		Ports:           []corev1.ContainerPort{{Name: exporterContainer, ContainerPort: metricsPort}},
		Resources:       small("10m", "32Mi", "128Mi"),
		SecurityContext: build.ContainerSecurity(),
		VolumeMounts:    []corev1.VolumeMount{{Name: "run", MountPath: "/var/run/postgresql"}},
	}
}

func small(cpu, memory, limit string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)},
	}
}
