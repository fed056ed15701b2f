package databasecluster

import (
	"encoding/json"
	"fmt"

	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/label"
)

// The binary logs of an engine whose servers do not archive their log themselves are archived by a pod of its own,
// which receives them from the primary as a replica would. Only that pod has the credentials of the store.

// Names of components of the archive of binary logs.
const (
	logArchive        = label.ComponentLogArchive
	logArchiveAccount = "archive-account"
	logArchiveRole    = "archive-role"
	logArchiveBinding = "archive-rolebinding"
	logArchiveGuard   = "archive-networkpolicy"
	logArchiveReports = "archive-reports"
)

// scratchLimit is the size limit of the folder for what was received and is not in the store yet, a quantity. The
// program holds a quarter of it, and then waits for the store, beside one transaction of up to 1280 MiB.
const scratchLimit = "2Gi"

// archivesLogs reports whether binary logs are archived.
func (d *cluster) archivesLogs() bool { return d.backup.enabled && d.backup.physical }

// addLogArchive declares what archives binary logs, after the Secret by which it connects.
func (d *cluster) addLogArchive(add func(compose.Component)) {
	if !d.archivesLogs() {
		return
	}
	add(compose.Component{Name: logArchiveAccount, Part: backups, Object: build.ServiceAccount(d.Scope, logArchive, d.server)})
	add(compose.Component{Name: logArchiveRole, Part: backups, Object: d.logArchiveRole()})
	add(compose.Component{Name: logArchiveBinding, Part: backups, Object: d.logArchiveBinding()})
	add(compose.Component{Name: logArchiveGuard, Part: backups, Object: d.logArchivePolicy()})
	add(compose.Component{Name: logArchiveReports, Part: backups, Object: d.logArchiveReport()})
	if !d.dumpable() {
		return
	}
	add(compose.Component{Name: logArchive, Part: backups, After: []string{d.server, instances, dumper}, Health: alwaysHealthy, Make: func() compose.Object { return d.logArchiver() }})
}

// logArchiveReport returns the ConfigMap in which the pod reports. Its content belongs to the pod alone.
func (d *cluster) logArchiveReport() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: d.Named(instance.ArchiveName(d.Name(d.server)), logArchive, d.server),
	}
}

// logArchiveRole lets the pod report: it may change the ConfigMap of its reports, and nothing else.
func (d *cluster) logArchiveRole() *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: d.Meta(logArchive, d.server),
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{instance.ArchiveName(d.Name(d.server))}, Verbs: []string{"patch"},
		}},
	}
}

func (d *cluster) logArchiveBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: d.Meta(logArchive, d.server),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: d.Name(logArchive)},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: d.Name(logArchive), Namespace: d.Namespace}},
	}
}

// logArchivePolicy lets the pod reach the servers, the store and the API server, and admits no connections.
func (d *cluster) logArchivePolicy() *networkingv1.NetworkPolicy {
	to := []networkingv1.NetworkPolicyEgressRule{build.ToDNS(), build.ToAPIServer(), build.ToPods(d.Selector(d.server), d.traits.Port)}
	to = append(to, build.ToStore(d.Namespace, d.backup.destination.Endpoint, d.backup.authenticates)...)
	return build.Egress(build.NetworkPolicy(d.Scope, logArchive, d.server), to...)
}

// logArchiver returns the Deployment whose pod archives binary logs.
func (d *cluster) logArchiver() *k8sappsv1.Deployment {
	replicas := int32(1)
	if d.spec.Hibernated && d.live.set.Status.Replicas == 0 {
		// It receives what the primary takes until it stops: binary logs are deleted when servers start after days.
		replicas = 0
	}
	return &k8sappsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: k8sappsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: d.Meta(logArchive, d.server),
		Spec: k8sappsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: d.Selector(logArchive)},
			// Two at once would archive the same twice.
			Strategy:             k8sappsv1.DeploymentStrategy{Type: k8sappsv1.RecreateDeploymentStrategyType},
			RevisionHistoryLimit: new(int32(2)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: build.PodMeta(d.Labels(logArchive, d.server), nil, &d.spec.PodOptions),
				Spec:       d.logArchivePod(),
			},
		},
	}
}

func (d *cluster) logArchivePod() corev1.PodSpec {
	pod := corev1.PodSpec{
		ServiceAccountName:           d.Name(logArchive),
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		// What it has received becomes a segment before it stops.
		TerminationGracePeriodSeconds: new(int64(60)),
		SecurityContext:               build.PodSecurity(d.traits.User, d.traits.User),
		Containers: []corev1.Container{{
			Name:    logArchive,
			Image:   d.image(),
			Command: []string{instance.Program, d.traits.LogArchiver},
			Env: []corev1.EnvVar{
				build.FromField(instance.NamespaceVariable, "metadata.namespace"),
				{Name: instance.ScopeVariable, Value: d.Name(d.server)},
				{Name: backup.TaskVariable, Value: d.logArchiveTask()},
			},
			Resources:       build.Resources("10m", "64Mi", "256Mi"),
			SecurityContext: build.ContainerSecurity(),
			VolumeMounts: []corev1.VolumeMount{
				build.TmpMount(),
				{Name: scratch, MountPath: backup.ScratchDir},
				{Name: dumper, MountPath: backup.SourceDir, ReadOnly: true},
				build.TokenMount(),
			},
		}},
		Volumes: []corev1.Volume{build.Tmp(tmpLimit), build.Scratch(scratch, scratchLimit), secretVolume(dumper, d.Name(dumper)), build.Token()},
	}
	d.mountStore(&pod, &pod.Containers[0])
	if d.backup.escrowed {
		// The provider generates the key. Without it nothing is archived, and the pod waits for it.
		v := secretVolume(backup.KeyVolume, backup.LogicalKeyName(d.backupName()), backup.KeyFileName)
		pod.Volumes = append(pod.Volumes, v)
		pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: backup.KeyDir, ReadOnly: true})
	}
	d.placeBeside(&pod)
	return pod
}

// scratch is the volume for what was received and is not in the store yet.
const scratch = "scratch"

// logArchiveTask returns the Task of the pod, as JSON.
func (d *cluster) logArchiveTask() string {
	t := backup.Task{
		Action: backup.Backup, Method: backup.BinaryLog, Namespace: d.Namespace, Name: d.backupName(),
		Database: backup.Database{Engine: d.traits.Type}, Destination: d.backup.destination, Encrypted: d.backup.encryption != nil || d.backup.escrowed,
	}
	t.Destination.SecretRef = nil
	b, err := json.Marshal(t)
	if err != nil {
		// It cannot fail: this task has no time, and all else can be written as JSON.
		return fmt.Sprintf("cannot write the task: %v", err)
	}
	return string(b)
}

// resolveMethod resolves the method of the backups of an engine that does not archive its log itself.
func (d *inputs) resolveMethod(b *backing, spec *appsv1.DatabaseBackup) error {
	b.physical = spec.Method == string(backupv1.Physical)
	return d.checkSwitched(b)
}

// checkSwitched refuses another method than that of the Backup that exists, which cannot change.
func (d *inputs) checkSwitched(b *backing) error {
	has, want := d.live.watcher.Spec.ForProvider.Method, string(backupv1.Logical)
	if b.physical {
		want = string(backupv1.Physical)
	}
	if !d.live.watcher.exists || has == "" || has == want {
		return nil
	}
	return compose.Invalidf("backup.method: Backup %s has method %s, which cannot change: delete it, and it is created again with method %s. The backups that it has made stay in the store, and do not expire", d.backupName(), has, want)
}
