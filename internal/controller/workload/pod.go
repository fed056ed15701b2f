package workload

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
)

// Source is the Secret with the connection to a database, and the servers that it leads to.
type Source struct {
	Secret string

	// Key of the Secret that holds the URI, or "" if the program finds the connection under its
	// default keys.
	Key string

	// Cluster is the DatabaseCluster of the connection, or "".
	Cluster string

	// Hosts are the servers of any other database, each with or without a port.
	Hosts []string
}

// Store is where backups are stored.
type Store struct {
	// Destination has the defaults of a configuration filled in.
	Destination backupv1.Destination

	// Secret is the one with the credentials, or "" for none.
	Secret string

	// Authenticates is true if the Secret has credentials, and not only what is used together with
	// an identity of the cloud.
	Authenticates bool

	// ServiceAccount is one that the store authorizes, or "" for one without rights.
	ServiceAccount string
}

// Pod is a pod of the image backup.
type Pod struct {
	// Labels of the pod. The label of the action is added.
	Labels map[string]string

	Task    backup.Task
	Image   string
	ID      int64
	Source  Source
	Store   Store
	Key     *backupv1.SecretKey
	Account string

	// Resources are those that a user has set, or nil for the defaults of the action.
	Resources *corev1.ResourceRequirements

	// Scratch is the volume of a throw-away server, or nil for a limited part of the node's disk.
	Scratch *Scratch

	// ThrowAway is the image of the throw-away server, or "" for Image.
	ThrowAway string
}

// Scratch is a volume that is created and deleted with its pod, and has the pod's labels.
type Scratch struct {
	Size  resource.Quantity
	Class string
}

// Template returns the template of the pod.
func (p Pod) Template() (corev1.PodTemplateSpec, error) {
	volumes, mounts := p.volumes()
	work, err := p.container(mounts)
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	out := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: Labelled(p.Labels, p.Task.Action)},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ServiceAccountName:            p.Account,
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			TerminationGracePeriodSeconds: new(int64(gracePeriod)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:        new(true),
				RunAsUser:           new(p.ID),
				RunAsGroup:          new(p.ID),
				FSGroup:             new(p.ID),
				FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
				SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{work},
			Volumes:    volumes,
		},
	}
	if !p.runsThrowAway() {
		bound(&out.Spec.Containers[0], p.Task.Action, p.Resources)
		return out, nil
	}
	if err := addThrowAway(&out, 0, p.Task, p.ThrowAway, p.Resources); err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	// This container feeds the throw-away server, so it gets the resources of a restore. Where it uploads what that
	// server has copied, it gets those of a dump.
	beside := backup.Restore
	if p.Task.Action == backup.Backup {
		beside = backup.Backup
	}
	bound(&out.Spec.Containers[0], beside, nil)
	return out, nil
}

// runsThrowAway reports whether the pod has a throw-away server: those that verify do, and those that copy the files
// of a server, which is what a throw-away server does.
func (p Pod) runsThrowAway() bool {
	return p.Task.Action == backup.Verify || p.Task.Action == backup.Backup && copies(&p.Task)
}

// container returns the container that runs the image backup.
func (p Pod) container(mounts []corev1.VolumeMount) (corev1.Container, error) {
	task, err := encode(p.Task)
	return corev1.Container{
		Name:                     backup.Container,
		Image:                    p.Image,
		Env:                      []corev1.EnvVar{{Name: backup.TaskVariable, Value: task}},
		TerminationMessagePath:   backup.TerminationLog,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			ReadOnlyRootFilesystem:   new(true),
		},
		VolumeMounts: mounts,
	}, err
}

// gracePeriod is how many seconds a pod that is stopped has to remove what it left in the store.
const gracePeriod = 60

// Labelled returns a copy of labels with the label of an action.
func Labelled(labels map[string]string, a backup.Action) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	out[backupv1.ActionLabel] = string(a)
	return out
}

func encode(t backup.Task) (string, error) {
	b, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("cannot write the task of a pod: %w", err)
	}
	return string(b), nil
}

// volumes returns the volumes and mounts of the pod. Deleting needs neither the database nor the
// key.
func (p Pod) volumes() ([]corev1.Volume, []corev1.VolumeMount) {
	volumes := []corev1.Volume{emptyDir(build.TmpVolume, tmpLimit)}
	mounts := []corev1.VolumeMount{build.TmpMount()}
	add := func(v corev1.Volume, path string, readOnly bool) {
		volumes = append(volumes, v)
		mounts = append(mounts, corev1.VolumeMount{Name: v.Name, MountPath: path, ReadOnly: readOnly})
	}
	switch p.Task.Action {
	case backup.Verify:
		// This container only reads how full the volume is, but for a copy, which it unpacks there before the server
		// starts.
		add(p.scratch(), backup.ScratchDir, !copies(&p.Task))
	case backup.Check, backup.Backup, backup.Restore:
		add(p.Source.volume(), backup.SourceDir, true)
		if p.runsThrowAway() {
			add(p.scratch(), backup.ScratchDir, false)
		}
	case backup.Delete, backup.Serve:
	}
	if p.Store.Secret != "" {
		add(secret(backup.StoreVolume, p.Store.Secret), backup.StoreDir, true)
	}
	if p.Store.Destination.Type == backupv1.Volume {
		add(claim(backup.DestinationVolume, p.Store.Destination.Bucket), backup.VolumeDir, false)
	}
	if p.Key != nil && p.Task.Action != backup.Delete {
		add(secret(backup.KeyVolume, p.Key.Name, corev1.KeyToPath{Key: p.Key.Key, Path: backup.KeyFileName}), backup.KeyDir, true)
	}
	return volumes, mounts
}

func (s Source) volume() corev1.Volume {
	if s.Key == "" || s.Key == appsv1.ConnectionURI {
		return secret("source", s.Secret)
	}
	// A Secret volume with items is not mounted if one of them is missing. The certificate
	// authority may be missing, the URI may not.
	v := corev1.Volume{Name: "source"}
	v.Projected = &corev1.ProjectedVolumeSource{
		DefaultMode: new(secretMode),
		Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: s.Secret}, Items: []corev1.KeyToPath{{Key: s.Key, Path: appsv1.ConnectionURI}}}},
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: s.Secret}, Items: []corev1.KeyToPath{{Key: backup.KeyAuthority, Path: backup.KeyAuthority}}, Optional: new(true)}},
		},
	}
	return v
}

func (p Pod) scratch() corev1.Volume {
	if p.Scratch == nil {
		return emptyDir(scratch, scratchLimit(p.Resources))
	}
	return p.Scratch.volume(Labelled(p.Labels, p.Task.Action))
}

// scratch is the name of the volume of a throw-away server.
const scratch = "scratch"

func (s Scratch) volume(labels map[string]string) corev1.Volume {
	spec := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: s.Size}},
	}
	if s.Class != "" {
		spec.StorageClassName = new(s.Class)
	}
	v := corev1.Volume{Name: scratch}
	v.Ephemeral = &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}
	return v
}

// secretMode lets the group of the pod read what is mounted, and no process write it.
const secretMode int32 = 0o440

func secret(name, of string, items ...corev1.KeyToPath) corev1.Volume {
	v := corev1.Volume{Name: name}
	v.Secret = &corev1.SecretVolumeSource{SecretName: of, Items: items, DefaultMode: new(secretMode)}
	return v
}

func claim(name, of string) corev1.Volume {
	v := corev1.Volume{Name: name}
	v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: of}
	return v
}

// emptyDir returns a volume of at most limit: the kubelet evicts a pod that writes more to it,
// since that would fill the node's disk for all other pods.
func emptyDir(name string, limit resource.Quantity) corev1.Volume {
	v := corev1.Volume{Name: name}
	v.EmptyDir = &corev1.EmptyDirVolumeSource{SizeLimit: &limit}
	return v
}
