package workload

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// TestThrowAway: the container of a throw-away database mounts no Secret and no token, and the
// container that reads the store cannot write to the database's files.
func TestThrowAway(t *testing.T) {
	p := Pod{
		Task:  backup.Task{Action: backup.Verify, Method: backupv1.Logical, Namespace: "shop", Name: "orders", Database: backup.Database{Engine: backupv1.PostgreSQL}, Encrypted: true},
		Store: Store{Secret: "store", Destination: backupv1.Destination{Type: backupv1.S3, Bucket: "b"}},
		Key:   &backupv1.SecretKey{Name: "key", Key: "identity"}, Source: Source{Secret: "source"}, Account: "orders",
	}
	pod, err := p.Template()
	if err != nil {
		t.Fatal(err)
	}
	closed(t, pod,
		[]string{"/tmp empty", backup.ScratchDir + " empty", backup.SocketDir + " empty"},
		[]string{"/tmp empty", backup.ScratchDir + " empty read-only", backup.StoreDir + " secret read-only", backup.KeyDir + " secret read-only", backup.SocketDir + " empty read-only"})
}

// TestThrowAwayPhysical: the same holds for a physical backup, except that the container that reads
// the store restores the files before the database starts.
func TestThrowAwayPhysical(t *testing.T) {
	task, err := encode(backup.Task{Action: backup.Backup, Method: backupv1.Physical, Namespace: "shop", Name: "orders", Database: backup.Database{Engine: backupv1.PostgreSQL}, Encrypted: true, Stanza: "7", Hosts: []string{"orders-0"}})
	if err != nil {
		t.Fatal(err)
	}
	from := &batchv1.CronJob{}
	from.Spec.JobTemplate.Spec.Template.Spec = corev1.PodSpec{
		AutomountServiceAccountToken: new(false),
		Containers: []corev1.Container{{
			Name: backup.Container, Image: "backup", Env: []corev1.EnvVar{{Name: backup.TaskVariable, Value: task}},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "tmp", MountPath: "/tmp"}, {Name: "repository", MountPath: backup.RepositoryDir, ReadOnly: true}, {Name: "store", MountPath: backup.StoreDir, ReadOnly: true},
			},
		}},
		Volumes: []corev1.Volume{emptyDir("tmp", tmpLimit), secret("repository", "tls"), secret("store", "store")},
	}
	pod, err := Derived{From: from, Change: func(t *backup.Task) { t.Action = backup.Verify }}.Template()
	if err != nil {
		t.Fatal(err)
	}
	closed(t, pod,
		[]string{"/tmp empty", backup.ScratchDir + " empty", backup.SocketDir + " empty", backup.ArchiveDir + " empty read-only"},
		[]string{"/tmp empty", backup.RepositoryDir + " secret read-only", backup.StoreDir + " secret read-only", backup.ScratchDir + " empty", backup.SocketDir + " empty read-only", backup.ArchiveDir + " empty"})
	served := backup.Task{}
	if err := json.Unmarshal([]byte(pod.Spec.InitContainers[0].Env[0].Value), &served); err != nil {
		t.Fatal(err)
	}
	want := backup.Task{Action: backup.Serve, Method: backupv1.Physical, Namespace: "shop", Name: "orders", Database: backup.Database{Engine: backupv1.PostgreSQL}}
	if diff := cmp.Diff(want, served); diff != "" {
		t.Errorf("the task of the throw-away database: -want, +got:\n%s", diff)
	}
}

// TestThrowAwayCopy: the same holds for the pods that copy the files of a MySQL and that verify such a copy. Both
// containers write to the volume: one the archive's files, the other one the database's.
func TestThrowAwayCopy(t *testing.T) {
	cases := map[backup.Action][]string{
		backup.Backup: {"/tmp empty", backup.SourceDir + " secret read-only", backup.ScratchDir + " empty", backup.StoreDir + " secret read-only", backup.KeyDir + " secret read-only", backup.SocketDir + " empty read-only"},
		backup.Verify: {"/tmp empty", backup.ScratchDir + " empty", backup.StoreDir + " secret read-only", backup.KeyDir + " secret read-only", backup.SocketDir + " empty read-only"},
	}
	for action, beside := range cases {
		t.Run(string(action), func(t *testing.T) {
			p := Pod{
				Task:  backup.Task{Action: action, Method: backupv1.Physical, Namespace: "shop", Name: "ledger", Database: backup.Database{Engine: backupv1.MySQL}, Encrypted: true},
				Store: Store{Secret: "store", Destination: backupv1.Destination{Type: backupv1.S3, Bucket: "b"}},
				Key:   &backupv1.SecretKey{Name: "key", Key: "identity"}, Source: Source{Secret: "source"}, Account: "ledger", ThrowAway: "mysql:9.7",
			}
			pod, err := p.Template()
			if err != nil {
				t.Fatal(err)
			}
			closed(t, pod, []string{"/tmp empty", backup.ScratchDir + " empty", backup.SocketDir + " empty"}, beside)
			served := backup.Task{}
			if err := json.Unmarshal([]byte(pod.Spec.InitContainers[0].Env[0].Value), &served); err != nil {
				t.Fatal(err)
			}
			want := backup.Task{Action: backup.Serve, For: action, Method: backupv1.Physical, Namespace: "shop", Name: "ledger", Database: backup.Database{Engine: backupv1.MySQL}}
			if diff := cmp.Diff(want, served); diff != "" {
				t.Errorf("the task of the throw-away database: -want, +got:\n%s", diff)
			}
		})
	}
}

// closed checks what is mounted in the container of a throw-away database, and in the one beside
// it.
func closed(t *testing.T, pod corev1.PodTemplateSpec, throwAway, beside []string) {
	t.Helper()
	if len(pod.Spec.InitContainers) != 1 || pod.Spec.InitContainers[0].Name != ThrowAway {
		t.Fatalf("want one container for the throw-away database, got %v", pod.Spec.InitContainers)
	}
	// A cloud does not give this container the identity of the ServiceAccount either.
	if diff := cmp.Diff(map[string]string{"eks.amazonaws.com/skip-containers": "throw-away", "azure.workload.identity/skip-containers": "throw-away"}, pod.Annotations); diff != "" {
		t.Errorf("the pod's annotations: -want, +got:\n%s", diff)
	}
	mounted := func(c *corev1.Container) (out []string) {
		for _, m := range c.VolumeMounts {
			v := pod.Spec.Volumes[slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })]
			kind := "other"
			switch {
			case v.Secret != nil:
				kind = "secret"
			case v.EmptyDir != nil:
				kind = "empty"
			}
			if m.ReadOnly {
				kind += " read-only"
			}
			out = append(out, m.MountPath+" "+kind)
		}
		return out
	}
	if diff := cmp.Diff(throwAway, mounted(&pod.Spec.InitContainers[0])); diff != "" {
		t.Errorf("the throw-away database: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(beside, mounted(&pod.Spec.Containers[0])); diff != "" {
		t.Errorf("who reads the store: -want, +got:\n%s", diff)
	}
	if shared := pod.Spec.ShareProcessNamespace; shared != nil && *shared || pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
		t.Error("want no token, and no processes of the other container to be seen")
	}
	if a, b := tmpOf(&pod.Spec.Containers[0]), tmpOf(&pod.Spec.InitContainers[0]); a == b {
		t.Errorf("want a /tmp each: both have %s", a)
	}
}

// TestDisk: no pod can fill the disk of its node, and a throw-away database may use as much as its
// pod.
func TestDisk(t *testing.T) {
	own := &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("64Gi")}}
	for name, tc := range map[string]struct {
		resources *corev1.ResourceRequirements
		want      string
	}{"Default": {want: "10Gi"}, "Own": {resources: own, want: "64Gi"}} {
		t.Run(name, func(t *testing.T) {
			p := Pod{Task: backup.Task{Action: backup.Verify, Method: backupv1.Logical, Name: "orders"}, Store: Store{Secret: "store"}, Resources: tc.resources}
			pod, err := p.Template()
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range pod.Spec.Volumes {
				if v.EmptyDir == nil {
					continue
				}
				want := "1Gi"
				if v.Name == scratch {
					want = tc.want
				}
				if got := v.EmptyDir.SizeLimit; got == nil || got.String() != want {
					t.Errorf("volume %s: limit %v, want %s", v.Name, got, want)
				}
			}
			if pod.Spec.Containers[0].Resources.Requests.StorageEphemeral().IsZero() {
				t.Error("the pod asks for no storage")
			}
		})
	}
}

func tmpOf(c *corev1.Container) string {
	return c.VolumeMounts[slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/tmp" })].Name
}
