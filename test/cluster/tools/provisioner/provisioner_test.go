package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func claim(request, capacity string) *corev1.PersistentVolumeClaim {
	pvc := &corev1.PersistentVolumeClaim{}
	pvc.Namespace, pvc.Name = "shop", "data"
	pvc.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(request)}
	pvc.Status.Phase = corev1.ClaimBound
	pvc.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
	return pvc
}

func TestResize(t *testing.T) {
	pending := claim("2Gi", "1Gi")
	pending.Status.Phase = corev1.ClaimPending
	cases := map[string]struct {
		reason string
		pvc    *corev1.PersistentVolumeClaim
		want   bool
	}{
		"Grown":   {reason: "A raised request is to be granted.", pvc: claim("2Gi", "1Gi"), want: true},
		"Same":    {reason: "A claim that has what it asks for is left alone.", pvc: claim("1Gi", "1024Mi")},
		"Pending": {reason: "A claim without a volume has nothing to grow.", pvc: pending},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := wantsMore(tc.pvc); got != tc.want {
				t.Errorf("%s\nwantsMore(...): got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}

	pvc := claim("2Gi", "1Gi")
	pvc.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimResizing, Status: corev1.ConditionTrue}}
	got := resized(pvc)
	if wantsMore(got) || len(got.Status.Conditions) != 0 {
		t.Errorf("resized(...): the claim still waits: %+v", got.Status)
	}
	if !wantsMore(pvc) {
		t.Error("resized(...): changes the claim of the cache")
	}
}

func TestSync(t *testing.T) {
	const ours = "storeplane.example.com/local"
	cases := map[string]struct {
		reason string
		by     string // provisioner of the volume
		pvc    *corev1.PersistentVolumeClaim
		// volume and claim are the capacities after sync.
		volume, claim string
		writes        []string
	}{
		"Grown": {
			reason: "The volume grows first: a claim must never show more than its volume has.",
			by:     ours,
			pvc:    claim("2Gi", "1Gi"),
			volume: "2Gi", claim: "2Gi",
			writes: []string{"update persistentvolumes", "update persistentvolumeclaims/status"},
		},
		"Same": {
			reason: "A claim that has what it asks for costs no request.",
			by:     ours,
			pvc:    claim("1Gi", "1Gi"),
			volume: "1Gi", claim: "1Gi",
		},
		"Foreign": {
			reason: "Another provisioner's volume is another resizer's.",
			by:     "other.example.com/disk",
			pvc:    claim("2Gi", "1Gi"),
			volume: "1Gi", claim: "1Gi",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.pvc.Spec.VolumeName = "pvc-1"
			pv := &corev1.PersistentVolume{}
			pv.Name, pv.Annotations = "pvc-1", map[string]string{annProvisionedBy: tc.by}
			pv.Spec.Capacity = tc.pvc.Status.Capacity.DeepCopy()
			client := fake.NewClientset(pv, tc.pvc)
			claims := cache.NewStore(cache.MetaNamespaceKeyFunc)
			if err := claims.Add(tc.pvc); err != nil {
				t.Fatal(err)
			}
			r := &resizer{client: client, name: ours, claims: claims}
			if err := r.sync(t.Context(), "shop/data"); err != nil {
				t.Fatal(err)
			}

			var writes []string
			for _, a := range client.Actions() {
				if a.GetVerb() == "get" {
					continue
				}
				resource := a.GetResource().Resource
				if sub := a.GetSubresource(); sub != "" {
					resource += "/" + sub
				}
				writes = append(writes, a.GetVerb()+" "+resource)
			}
			if !slices.Equal(writes, tc.writes) {
				t.Errorf("%s\nsync(...): wrote %v, want %v", tc.reason, writes, tc.writes)
			}
			gotVolume, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			gotClaim, err := client.CoreV1().PersistentVolumeClaims("shop").Get(t.Context(), "data", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := gotVolume.Spec.Capacity.Storage().String(); got != tc.volume {
				t.Errorf("%s\nsync(...): the volume has %s, want %s", tc.reason, got, tc.volume)
			}
			if got := gotClaim.Status.Capacity.Storage().String(); got != tc.claim {
				t.Errorf("%s\nsync(...): the claim has %s, want %s", tc.reason, got, tc.claim)
			}
		})
	}
}

func TestFolders(t *testing.T) {
	f := &folders{root: t.TempDir()}
	o := controller.ProvisionOptions{PVName: "pvc-1", PVC: claim("1Gi", "1Gi"), SelectedNodeName: "node"}
	path := filepath.Join(f.root, "shop_data_pvc-1")
	if err := os.Mkdir(path, 0o777); err != nil { //nolint:gosec // The mode is the provisioner's.
		t.Fatal(err)
	}

	elsewhere := t.TempDir()
	foreign := &corev1.PersistentVolume{}
	foreign.Spec.Local = &corev1.LocalVolumeSource{Path: elsewhere}
	if err := f.Delete(t.Context(), foreign); err == nil {
		t.Error("Delete(...): removes a folder that is none of its own")
	}
	if _, err := os.Stat(elsewhere); err != nil {
		t.Error(err)
	}

	o.SelectedNodeName = ""
	if _, _, err := f.Provision(t.Context(), o); err == nil {
		t.Error("Provision(...): makes a volume that is on no node")
	}
	ours := &corev1.PersistentVolume{}
	ours.Spec.Local = &corev1.LocalVolumeSource{Path: path}
	if err := f.Delete(t.Context(), ours); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("Delete(...): leaves %s", path)
	}
}
