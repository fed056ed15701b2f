package databasecluster

import (
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/storeplane/storeplane/internal/build"
)

// postgresUser is the uid and gid of postgres in package/images/postgresql.
const postgresUser = 26

// configHashAnnotation on the pods makes a change of the configuration roll
// them.
const configHashAnnotation = "storeplane.example.com/config-hash"

// statefulSet keeps the volume claim templates that a StatefulSet already has:
// the API server refuses a change of them, and with it all else.
func (d *cluster) statefulSet(templates []corev1.PersistentVolumeClaim) *k8sappsv1.StatefulSet {
	if len(templates) == 0 {
		templates = []corev1.PersistentVolumeClaim{d.volumeClaim()}
	}

	// The XRD and validate have let only whole versions through.
	version, _ := parseVersion(d.spec.Version)

	meta := d.Meta(postgresql, appName)
	meta.Labels[build.LabelVersion] = version.tag()
	labels := d.Labels(postgresql, appName)
	labels[scopeLabel] = d.Name(postgresql)

	return &k8sappsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: k8sappsv1.SchemeGroupVersion.String(), Kind: "StatefulSet"},
		ObjectMeta: meta,
		Spec: k8sappsv1.StatefulSetSpec{
			Replicas:    &d.spec.Size,
			ServiceName: d.Name(postgresql),
			Selector:    &metav1.LabelSelector{MatchLabels: d.Selector(postgresql)},
			// Patroni orders its servers itself, and after an outage none may
			// wait for another that waits for it.
			PodManagementPolicy:                  k8sappsv1.ParallelPodManagement,
			RevisionHistoryLimit:                 new(int32(5)),
			PersistentVolumeClaimRetentionPolicy: d.retention(),
			VolumeClaimTemplates:                 templates,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      labels,
					Annotations: map[string]string{configHashAnnotation: build.Digest(d.patroniYAML(""), d.restartParameters(), postInit, onRole)},
				},
				Spec: d.pod(version),
			},
		},
	}
}

// retention of the volumes. Scaling down keeps them: scaling up again finds its
// data.
func (d *cluster) retention() *k8sappsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	r := &k8sappsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: k8sappsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		WhenScaled:  k8sappsv1.RetainPersistentVolumeClaimRetentionPolicyType,
	}
	if d.profile.KeepVolumes {
		r.WhenDeleted = k8sappsv1.RetainPersistentVolumeClaimRetentionPolicyType
	}
	return r
}

func (d *cluster) volumeClaim() corev1.PersistentVolumeClaim {
	pvc := corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: d.Labels(postgresql, appName)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			// Checked by storage.
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(d.storage)}},
		},
	}
	class := d.spec.StorageClassName
	if class == "" {
		class = d.settings.StorageClassName
	}
	if class != "" {
		pvc.Spec.StorageClassName = &class
	}
	return pvc
}

func (d *cluster) pod(version number) corev1.PodSpec {
	pod := corev1.PodSpec{
		ServiceAccountName: d.Name(postgresql),
		// Patroni keeps its state in the cluster, so its pods need the token.
		AutomountServiceAccountToken: new(true),
		EnableServiceLinks:           new(false),
		SecurityContext:              build.PodSecurity(postgresUser, postgresUser),
		// A primary hands over and writes a checkpoint before it goes.
		TerminationGracePeriodSeconds: new(int64(120)),
		Containers:                    []corev1.Container{d.container(version)},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: d.Name(postgresql)},
			}}},
			{Name: "credentials", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName:  d.Name(credentials),
				DefaultMode: new(int32(0o440)),
			}}},
			build.Scratch("tmp", corev1.StorageMediumDefault),
			build.Scratch("run", corev1.StorageMediumDefault),
			build.Scratch("shm", corev1.StorageMediumMemory),
		},
	}
	if d.profile.HighlyAvailable {
		pod.TopologySpreadConstraints = build.Spread(d.Scope, postgresql)
		pod.Affinity = build.AntiAffinity(d.Scope, postgresql)
	}
	return pod
}

func (d *cluster) container(version number) corev1.Container {
	api := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("patroni")}}
	}
	c := corev1.Container{
		Name:  postgresql,
		Image: d.settings.ImageRegistry + "/postgresql:" + version.tag(),
		Env: []corev1.EnvVar{
			// Patroni hides its own variables from the callbacks.
			build.FromField("POD_NAME", "metadata.name"),
			build.FromField("POD_NAMESPACE", "metadata.namespace"),
			build.FromField("POD_IP", "status.podIP"),
			{Name: "PATRONI_NAME", Value: "$(POD_NAME)"},
			{Name: "PATRONI_KUBERNETES_NAMESPACE", Value: "$(POD_NAMESPACE)"},
			{Name: "PATRONI_KUBERNETES_POD_IP", Value: "$(POD_IP)"},
			{Name: "PATRONI_POSTGRESQL_CONNECT_ADDRESS", Value: "$(POD_IP):5432"},
			{Name: "PATRONI_RESTAPI_CONNECT_ADDRESS", Value: "$(POD_IP):8008"},
			build.FromSecret("PATRONI_SUPERUSER_PASSWORD", d.Name(credentials), keySuperuser),
			build.FromSecret("PATRONI_REPLICATION_PASSWORD", d.Name(credentials), keyReplication),
			build.FromSecret("PATRONI_REWIND_PASSWORD", d.Name(credentials), keyRewind),
		},
		Ports: []corev1.ContainerPort{
			{Name: "postgresql", ContainerPort: port},
			{Name: "patroni", ContainerPort: apiPort},
		},
		Resources:       d.profile.Database,
		SecurityContext: build.ContainerSecurity(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "data", MountPath: volumeDir},
			{Name: "config", MountPath: configDir, ReadOnly: true},
			{Name: "credentials", MountPath: secretDir, ReadOnly: true},
			{Name: "tmp", MountPath: "/tmp"},
			{Name: "run", MountPath: "/var/run/postgresql"},
			{Name: "shm", MountPath: "/dev/shm"},
		},
		// Patroni answers liveness as soon as it runs, also while a server
		// is restored for hours.
		StartupProbe:   &corev1.Probe{ProbeHandler: api("/liveness"), PeriodSeconds: 1, FailureThreshold: 120, TimeoutSeconds: 3},
		LivenessProbe:  &corev1.Probe{ProbeHandler: api("/liveness"), PeriodSeconds: 10, FailureThreshold: 6, TimeoutSeconds: 5},
		ReadinessProbe: &corev1.Probe{ProbeHandler: api("/readiness"), PeriodSeconds: 2, FailureThreshold: 3, TimeoutSeconds: 3},
	}
	if d.spec.Resources != nil {
		c.Resources = *d.spec.Resources
	}
	return c
}
