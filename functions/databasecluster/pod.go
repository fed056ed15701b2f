package databasecluster

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

func (d *cluster) pod() corev1.PodSpec {
	pod := corev1.PodSpec{
		ServiceAccountName: d.Name(d.server),
		// Patroni and the manager keep their state in the cluster: their containers mount the
		// token, and no other container of the pod does.
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		SecurityContext:              build.PodSecurity(d.traits.User, d.traits.User),
		// A primary hands over and writes a checkpoint before it stops.
		TerminationGracePeriodSeconds: new(int64(120)),
		Containers:                    []corev1.Container{d.database()},
		Volumes: []corev1.Volume{
			build.Token(),
			{Name: engine.ConfigVolume, VolumeSource: corev1.VolumeSource{Projected: d.configuredFiles()}},
			secretVolume(engine.TLSVolume, d.tlsSecret(), build.KeyCertificate, build.KeyPrivate, build.KeyAuthority),
			secretVolume(control.Volume, d.Name(controlTLS), control.FileCertificate, control.FileKey, control.FileAuthority),
			build.Tmp(tmpLimit),
			build.Scratch(engine.RunVolume, tmpLimit),
			build.Memory(engine.MemoryVolume),
		},
	}
	if len(d.traits.PasswordFiles) > 0 {
		// Without keys it would contain all passwords.
		pod.Volumes = slices.Insert(pod.Volumes, 2, secretVolume(engine.CredentialsVolume, d.Name(credentials), d.traits.PasswordFiles...))
	}
	if d.traits.Manager.Number != 0 {
		// As a sidecar the manager runs before the server, to expand its volume, and after it,
		// while the server stops.
		pod.InitContainers = []corev1.Container{d.manager(d.facts.Image)}
	}
	if d.monitored() {
		pod.Containers = append(pod.Containers, d.engine.Exporter(d.facts))
	}
	switch {
	case d.needsRepository():
		d.mountRepository(&pod)
	case d.spec.RestoreFrom != nil:
		d.mountSource(&pod)
	}
	if d.profile.HighlyAvailable {
		pod.TopologySpreadConstraints = build.Spread(d.Scope, d.server)
		pod.Affinity = build.AntiAffinity(d.Scope, d.server)
	}
	build.Place(&pod, &d.spec.PodOptions)
	return pod
}

// configuredFiles returns the files of the configuration. Without keys a source would have all files.
func (d *cluster) configuredFiles() *corev1.ProjectedVolumeSource {
	files := &corev1.ProjectedVolumeSource{
		DefaultMode: new(int32(0o440)),
		Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: d.Name(d.server)},
			Items:                append(keys(d.configuration.Files), corev1.KeyToPath{Key: instance.FilePeers, Path: instance.FilePeers}),
		}}},
	}
	if len(d.configuration.SecretFiles) > 0 {
		files.Sources = append(files.Sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: d.Name(credentials)},
			Items:                keys(d.configuration.SecretFiles),
		}})
	}
	return files
}

// placeBeside places a pod that works for the servers on the nodes that the claim requests. Rules
// about other pods in the claim's affinity are about the servers, and do not apply.
func (d *cluster) placeBeside(pod *corev1.PodSpec) {
	build.Place(pod, &d.spec.PodOptions)
	if a := pod.Affinity; a != nil {
		pod.Affinity = nil
		if a.NodeAffinity != nil {
			pod.Affinity = &corev1.Affinity{NodeAffinity: a.NodeAffinity}
		}
	}
}

// tmpLimit is the size limit of a pod's folder /tmp, a quantity: the servers' own temporary
// files are on their volumes.
const tmpLimit = "1Gi"

// mountRepository mounts what archiving, backups and a restore need, and adds
// pgBackRest's server.
func (d *cluster) mountRepository(pod *corev1.PodSpec) {
	var files []corev1.KeyToPath
	manager, server := &pod.InitContainers[0], &pod.Containers[0]
	if d.archives() {
		files = []corev1.KeyToPath{
			{Key: pgbackrest.FileConfig, Path: pgbackrest.FileConfig},
			{Key: instance.BackupFile, Path: instance.BackupFile},
		}
	}
	pod.Volumes = append(pod.Volumes, d.repositoryVolume(d.Name(d.server), files...))
	mount := corev1.VolumeMount{Name: repository, MountPath: backup.RepositoryDir, ReadOnly: true}
	manager.VolumeMounts, server.VolumeMounts = append(manager.VolumeMounts, mount), append(server.VolumeMounts, mount)
	if d.spec.RestoreFrom != nil {
		d.mountSource(pod)
	}
	if !d.archives() {
		return
	}
	d.mountStore(pod, manager, server)
	pod.InitContainers = append(pod.InitContainers, d.backupServer(server.Image))
}

// mountSource mounts what a new cluster is filled from. The Secret is removed once it has its data.
func (d *cluster) mountSource(pod *corev1.PodSpec) {
	v := secretVolume(source, d.Name(source))
	v.Secret.Optional = new(true)
	pod.Volumes = append(pod.Volumes, v)
	server := &pod.Containers[0]
	server.VolumeMounts = append(server.VolumeMounts, corev1.VolumeMount{Name: source, MountPath: instance.RestoreDir, ReadOnly: true})
}

// backupServer returns the container that lets the pods that make backups read the server's files,
// by a certificate. It starts before PostgreSQL, and the pod is ready without it.
func (d *cluster) backupServer(image string) corev1.Container {
	return corev1.Container{
		Name:            backups,
		Image:           image,
		Command:         []string{instance.Program, instance.CommandServe},
		Ports:           []corev1.ContainerPort{{Name: backups, ContainerPort: pgbackrest.Port}},
		RestartPolicy:   new(corev1.ContainerRestartPolicyAlways),
		Resources:       build.Resources("10m", "32Mi", "256Mi"),
		SecurityContext: build.ContainerSecurity(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: instance.DataVolume, MountPath: d.traits.DataDir, ReadOnly: true},
			{Name: repository, MountPath: backup.RepositoryDir, ReadOnly: true},
			build.TmpMount(),
			{Name: engine.RunVolume, MountPath: d.traits.RunDir},
		},
	}
}

// secretVolume returns a volume with the given keys of a Secret, or with all if none are given.
func secretVolume(name, secret string, keys ...string) corev1.Volume {
	v := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret,
		// PostgreSQL accepts a private key that root owns and its group can read.
		DefaultMode: new(int32(0o440)),
	}}}
	for _, k := range keys {
		v.Secret.Items = append(v.Secret.Items, corev1.KeyToPath{Key: k, Path: k})
	}
	return v
}

// database returns the server's container, with the claim's resources.
func (d *cluster) database() corev1.Container {
	c := d.engine.Server(d.facts)
	// Its hooks call the manager.
	c.VolumeMounts = append(c.VolumeMounts, build.TokenMount(), controlMount())
	c.Resources = d.resources()
	return c
}

// resources returns the resources of a server: the claim's, or those of its environment, with the
// memory that its engine needs.
func (d *inputs) resources() corev1.ResourceRequirements {
	if d.spec.Resources != nil {
		return *d.spec.Resources
	}
	out := *d.profile.Database.DeepCopy()
	if out.Limits.Memory().Value() < d.traits.Memory {
		out.Limits[corev1.ResourceMemory] = *resource.NewQuantity(d.traits.Memory, resource.BinarySI)
	}
	return out
}

// keys returns the items by which files are mounted under their own names, sorted.
func keys(files map[string]string) []corev1.KeyToPath {
	out := make([]corev1.KeyToPath, 0, len(files)+1)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, corev1.KeyToPath{Key: name, Path: name})
	}
	return out
}

// controlMount returns the mount of the certificate by which this cluster's servers
// authenticate to each other.
func controlMount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: control.Volume, MountPath: control.Dir, ReadOnly: true}
}

func (d *cluster) manager(image string) corev1.Container {
	api := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(engine.ManagerContainer), Scheme: corev1.URISchemeHTTPS}}
	}
	return corev1.Container{
		Name:            engine.ManagerContainer,
		Image:           image,
		Command:         []string{instance.Program, instance.CommandRun},
		Env:             engine.Identity(d.Name(d.server)),
		Ports:           []corev1.ContainerPort{{Name: engine.ManagerContainer, ContainerPort: instance.ManagerPort}},
		RestartPolicy:   new(corev1.ContainerRestartPolicyAlways),
		Resources:       build.Resources("10m", "32Mi", "128Mi"),
		SecurityContext: build.ContainerSecurity(),
		VolumeMounts:    append(slices.Clone(d.traits.Mounts), build.TokenMount(), controlMount()),
		// The manager may wait for other servers or for a decision, as long as that takes. A
		// restart would not help, and the back-off of restarts would only delay it.
		StartupProbe:  &corev1.Probe{ProbeHandler: api(instance.StartedPath), PeriodSeconds: 1, FailureThreshold: 24 * 60 * 60, TimeoutSeconds: 3},
		LivenessProbe: &corev1.Probe{ProbeHandler: api(instance.HealthyPath), PeriodSeconds: 10, FailureThreshold: 6, TimeoutSeconds: 5},
	}
}
