package databasecluster

import (
	"cmp"
	"fmt"

	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// repositoryTemplate is the name of the volume claim template.
const repositoryTemplate = "data"

// repositoryClaim returns the name of the volume claim that is created for backups,
// as a StatefulSet names it.
func (d *inputs) repositoryClaim() string { return repositoryClaim(d.Scope) }

func repositoryClaim(of build.Scope) string {
	return repositoryTemplate + "-" + of.Name(repository) + "-0"
}

// servedBy returns the component of the StatefulSet that serves the volume with the backups. The
// volume claim template of one that exists cannot be changed, and the volume that was created for
// backups keeps its server when they are made elsewhere. So a volume claim that the destination names
// has a server of its own beside that.
func (d *cluster) servedBy() string {
	l := d.live
	if !d.backup.own && (l.namedClaim.exists || len(l.repository.Spec.VolumeClaimTemplates) > 0) {
		return namedClaim
	}
	return repository
}

// isReplaced reports whether the server of a named volume claim has the name that the server of the
// volume that is created for backups needs. It has no template, which cannot be added, and holds no
// data itself.
func (d *inputs) isReplaced(b *backing) bool {
	return b.own && d.live.repository.exists && len(d.live.repository.Spec.VolumeClaimTemplates) == 0
}

// checkReplaced refuses a server that isReplaced and does not belong to the claim: Crossplane deletes
// only what the claim has composed.
func (d *inputs) checkReplaced(c *compose.Claim, b *backing) error {
	if !d.isReplaced(b) || c.IsComposed(repository) {
		return nil
	}
	return compose.Invalidf("backup.destination: StatefulSet %s of an earlier claim serves another volume, and cannot be changed: delete it, or name its volume claim as backup.destination.bucket", d.Name(repository))
}

// addRepository declares the server of the volume with the backups, and what it is reached by: one
// Service, whichever StatefulSet it is, so that neither the servers' certificate nor the host in their
// configuration changes. A server that isReplaced is left out of this pass, so that it is deleted. The
// next pass, which its deletion begins, applies the other one.
func (d *cluster) addRepository(add func(compose.Component)) {
	b, component := &d.backup, d.servedBy()
	if !d.isReplaced(b) {
		add(compose.Component{Name: component, Part: backups, Object: d.repositoryServer(component), HoldsData: b.own, Health: alwaysHealthy})
	}
	add(compose.Component{Name: repositoryHost, Part: backups, Object: d.repositoryService(repository, component)})
	// The volume that was created keeps its server, which stays guarded.
	add(compose.Component{Name: repositoryGuard, Part: backups, Object: d.repositoryPolicy(repository)})
	if component == namedClaim {
		add(compose.Component{Name: namedClaimGuard, Part: backups, Object: d.repositoryPolicy(namedClaim)})
	}
}

// repositoryServer returns the StatefulSet that serves the volume with the backups to the servers:
// a volume is mounted on one node, and WAL comes from all.
func (d *cluster) repositoryServer(component string) *k8sappsv1.StatefulSet {
	now := &d.live.repository
	if component == namedClaim {
		now = &d.live.namedClaim
	}
	s := d.volumeServer(component, now, d.backup.destination.Bucket, d.Name(d.server))
	s.Spec.ServiceName = d.Name(repository)
	d.exportVolume(&s.Spec.Template.Spec.Containers[0])
	if !d.backup.own {
		return s
	}
	s.Spec.Template.Spec.Volumes = s.Spec.Template.Spec.Volumes[:len(s.Spec.Template.Spec.Volumes)-1]
	s.Spec.Template.Spec.Containers[0].VolumeMounts[1].Name = repositoryTemplate
	s.Spec.PersistentVolumeClaimRetentionPolicy = d.retention()
	// The template of a StatefulSet that exists cannot be changed.
	if s.Spec.VolumeClaimTemplates = d.live.repository.Spec.VolumeClaimTemplates; len(s.Spec.VolumeClaimTemplates) > 0 {
		return s
	}
	claim := d.volumeClaim()
	claim.Name, claim.Labels = repositoryTemplate, d.Labels(repository, d.server)
	// planRepository has checked the quantity.
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(d.backup.storage)
	s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	return s
}

// exportVolume makes the server export how full its volume is.
func (d *cluster) exportVolume(c *corev1.Container) {
	if !d.monitored() {
		return
	}
	c.Command = append(c.Command, fmt.Sprintf("--metrics=:%d", instance.ManagerPort))
	c.Ports = append(c.Ports, corev1.ContainerPort{Name: engine.ExporterContainer, ContainerPort: instance.ManagerPort})
}

// volumeServer returns a StatefulSet that runs pgBackRest's server beside a volume claim. config is
// the ConfigMap with its configuration, and now the StatefulSet that is observed.
func (d *cluster) volumeServer(component string, now *statefulSet, claim, config string) *k8sappsv1.StatefulSet {
	c := corev1.Container{
		Name:            repository,
		Image:           d.image(),
		Command:         []string{instance.Program, instance.CommandServe},
		Ports:           []corev1.ContainerPort{{Name: repository, ContainerPort: pgbackrest.Port}},
		Resources:       build.Resources("10m", "32Mi", "256Mi"),
		SecurityContext: build.ContainerSecurity(),
		VolumeMounts: []corev1.VolumeMount{
			build.TmpMount(),
			{Name: backup.DestinationVolume, MountPath: backup.VolumeDir},
			{Name: repository, MountPath: backup.RepositoryDir, ReadOnly: true},
		},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(repository)}}, PeriodSeconds: 5},
	}
	pod := corev1.PodSpec{
		ServiceAccountName:           d.Name(backups),
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		SecurityContext:              build.PodSecurity(d.traits.User, d.traits.User),
		Containers:                   []corev1.Container{c},
		Volumes: []corev1.Volume{
			build.Tmp(tmpLimit),
			d.repositoryVolume(config, corev1.KeyToPath{Key: fileRepository, Path: pgbackrest.FileConfig}),
			claimVolume(claim),
		},
	}
	d.placeBeside(&pod)
	return &k8sappsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: k8sappsv1.SchemeGroupVersion.String(), Kind: "StatefulSet"},
		ObjectMeta: d.Meta(component, d.server),
		Spec: k8sappsv1.StatefulSetSpec{
			Replicas:             new(int32(1)),
			ServiceName:          d.Name(component),
			Selector:             &metav1.LabelSelector{MatchLabels: d.Selector(component)},
			RevisionHistoryLimit: new(int32(2)),
			// Otherwise a pod that cannot start, because of its image for example, is not replaced
			// when the claim is fixed. The policy of a StatefulSet that exists cannot be changed.
			PodManagementPolicy: cmp.Or(now.Spec.PodManagementPolicy, k8sappsv1.ParallelPodManagement),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: build.PodMeta(d.Labels(component, d.server), nil, &d.spec.PodOptions),
				Spec:       pod,
			},
		},
	}
}

// repositoryVolume returns the volume with pgBackRest's configuration and certificate.
func (d *cluster) repositoryVolume(config string, files ...corev1.KeyToPath) corev1.Volume {
	sources := []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: d.Name(backupTLS)},
		Items: []corev1.KeyToPath{
			{Key: pgbackrest.FileAuthority, Path: pgbackrest.FileAuthority},
			{Key: pgbackrest.FileCertificate, Path: pgbackrest.FileCertificate},
			{Key: pgbackrest.FileKey, Path: pgbackrest.FileKey},
		},
	}}}
	if len(files) > 0 {
		sources = append(sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: config}, Items: files,
		}})
	}
	return corev1.Volume{Name: repository, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		// pgBackRest accepts a private key that root owns and its group can read.
		DefaultMode: new(int32(0o440)), Sources: sources,
	}}}
}

// repositoryService returns the Service by which the servers reach the pods of the component served.
func (d *cluster) repositoryService(component, served string) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: d.Meta(component, d.server),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  d.Selector(served),
			Ports:     []corev1.ServicePort{{Name: repository, Port: pgbackrest.Port, TargetPort: intstr.FromString(repository)}},
		},
	}
}

// repositoryPolicy admits the servers, and the monitoring namespace to the metrics. pgBackRest's
// server opens no connections, so all egress is denied.
func (d *cluster) repositoryPolicy(component string) *networkingv1.NetworkPolicy {
	ways := []build.Admit{{From: []networkingv1.NetworkPolicyPeer{build.Pods(d.Selector(d.server))}, Ports: []int32{pgbackrest.Port}}}
	if component != source && d.monitored() {
		ways = append(ways, build.Scrapers(d.settings.Monitoring.Namespace, instance.ManagerPort)...)
	}
	return build.Egress(build.NetworkPolicy(d.Scope, component, d.server, ways...))
}

// backupPods selects the pods that make backups.
func (d *cluster) backupPods() networkingv1.NetworkPolicyPeer {
	return build.Pods(map[string]string{backupv1.BackupLabel: d.backupName()})
}
