package databasecluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/storeplane/storeplane/functions/functionstest"
)

func TestEnvironments(t *testing.T) {
	type want struct {
		storage, whenDeleted                string
		budget, spread, affinity, protected bool
		synchronous                         any
		backup                              string
	}
	cases := map[string]struct {
		reason string
		spec   string
		want   want
	}{
		"Development": {
			reason: "The most frugal.", spec: "{size: 1, version: '17', environment: development}",
			want: want{storage: "10Gi", whenDeleted: "Delete", synchronous: false, backup: "True Disabled No backups are asked for"},
		},
		"None": {
			reason: "Without one it is development.", spec: "{size: 2, version: '17'}",
			want: want{storage: "10Gi", whenDeleted: "Delete", synchronous: false, backup: "True Disabled No backups are asked for"},
		},
		"Staging": {
			reason: "Available, not protected.", spec: "{size: 2, version: '17', environment: staging}",
			want: want{storage: "50Gi", whenDeleted: "Delete", budget: true, spread: true, affinity: true, synchronous: false, backup: noBackups},
		},
		"Production": {
			reason: "The safest.", spec: "{size: 3, version: '17', environment: production}",
			want: want{storage: "100Gi", whenDeleted: "Retain", budget: true, spread: true, affinity: true, protected: true, synchronous: "quorum", backup: noBackups},
		},
		"Overridden": {
			reason: "Every default gives way to its field.", spec: "{size: 3, version: '17', environment: production, storageSize: 1Gi, synchronous: false, backup: {enabled: false}, deletionProtection: false}",
			want: want{storage: "1Gi", whenDeleted: "Retain", budget: true, spread: true, affinity: true, synchronous: false, backup: "True Disabled No backups are asked for"},
		},
		"ProductionOfOne": {
			reason: "One server cannot wait for another.", spec: "{size: 1, version: '17', environment: production}",
			want: want{storage: "100Gi", whenDeleted: "Retain", budget: true, spread: true, affinity: true, protected: true, synchronous: false, backup: noBackups},
		},
		"ProtectedDevelopment": {
			reason: "Whoever wants protection has it.", spec: "{size: 1, version: '17', deletionProtection: true}",
			want: want{storage: "10Gi", whenDeleted: "Delete", protected: true, synchronous: false, backup: "True Disabled No backups are asked for"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Settle()
			set := servers(t, c)
			q := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage]
			got := want{
				storage: q.String(), whenDeleted: string(set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted), protected: c.Observed["protection"] != nil,
				budget: c.Observed["disruptionbudget"] != nil, spread: len(set.Spec.Template.Spec.TopologySpreadConstraints) > 0, affinity: set.Spec.Template.Spec.Affinity != nil,
				synchronous: dynamic(t, c)["synchronous_mode"], backup: c.ConditionLine("BackupHealthy"),
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if got := set.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled; got != k8sappsv1.RetainPersistentVolumeClaimRetentionPolicyType {
				t.Errorf("Scaling down keeps the data: got %s", got)
			}
			if pdb := c.Observed["disruptionbudget"]; pdb != nil {
				if diff := cmp.Diff(set.Spec.Selector.MatchLabels, functionstest.As[policyv1.PodDisruptionBudget](t, pdb).Spec.Selector.MatchLabels); diff != "" {
					t.Errorf("The budget is of the servers: -want, +got:\n%s", diff)
				}
			}
		})
	}
}

const noBackups = "False BackupProviderNotInstalled Backup verification is unavailable: provider-storeplane is not installed"
