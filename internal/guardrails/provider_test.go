package guardrails_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	backupapi "github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/test/plane/planetest"
)

// attacked are objects that an attacker with the provider's token might change.
const attacked = `
- {apiVersion: v1, kind: Namespace, metadata: {name: crossplane-system}}
- {apiVersion: v1, kind: Secret, metadata: {name: shop.orders, namespace: storeplane-escrow}, data: {key: azE=}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: open, namespace: default, annotations: {config.example.com/appconfigs: shop}}
  spec: &spec
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec:
        volumes: [{name: own, emptyDir: {}}]
        containers: [{name: app, image: app:v1, env: [{name: OWN, value: x}]}]
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: closed, namespace: default}
  spec: *spec
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: dns, namespace: kube-system, annotations: {config.example.com/appconfigs: shop}}
  spec: *spec
- apiVersion: batch/v1
  kind: CronJob
  metadata: {name: open, namespace: default, annotations: {config.example.com/appconfigs: shop}}
  spec: &cron
    schedule: "@daily"
    jobTemplate: {spec: {template: {metadata: {labels: {app: web}}, spec: {restartPolicy: Never, containers: [{name: app, image: app:v1}]}}}}
- apiVersion: batch/v1
  kind: CronJob
  metadata: {name: backup, namespace: default, ownerReferences: [{apiVersion: backup.example.com/v1, kind: Backup, name: orders, uid: a, controller: true}]}
  spec:
    schedule: "@daily"
    jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: backup, image: app:v1}]}}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: web-x, namespace: default}
  spec: {containers: [{name: app, image: app:v1}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: db-0, namespace: default, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: b}]}
  spec: {containers: [{name: app, image: app:v1}]}
- {apiVersion: apps.example.com/v1, kind: WebApp, metadata: {name: shop, namespace: default, labels: {team: a}, annotations: {team.example.com/owner: a}, finalizers: [example.com/stay]}, spec: {image: "app:v1"}}
- {apiVersion: platform.example.com/v1, kind: EcommercePlatform, metadata: {name: store, namespace: default}, spec: {frontend: {image: "f:1"}, backend: {image: "b:1"}}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: admin, namespace: default}}
- apiVersion: v1
  kind: ServiceAccount
  metadata: {name: orders-dump, namespace: default, annotations: {example.com/seen: a}, ownerReferences: [{apiVersion: backup.example.com/v1, kind: Backup, name: orders, uid: a, controller: true}]}
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata: {name: closed, namespace: default}
  spec: {podSelector: {}, policyTypes: [Ingress]}
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata: {name: orders-dump, namespace: default, ownerReferences: [{apiVersion: backup.example.com/v1, kind: Backup, name: orders, uid: a, controller: true}]}
  spec: {podSelector: {matchLabels: {backup.example.com/backup: orders}}, policyTypes: [Ingress, Egress]}
`

// left are objects that existed in the system's namespaces before the policies: those of the
// provider, and others.
const left = `
- apiVersion: backup.example.com/v1
  kind: Backup
  metadata: {name: orders, namespace: crossplane-system, finalizers: [finalizer.managedresource.crossplane.io]}
  spec: {forProvider: {source: {type: postgresql, connection: {secretRef: {name: orders}}}, destination: {type: s3, bucket: backups}}}
- apiVersion: backup.example.com/v1
  kind: Restore
  metadata: {name: orders, namespace: crossplane-system, finalizers: [finalizer.managedresource.crossplane.io]}
  spec: {forProvider: {source: {backupRef: {name: orders}}, target: {type: postgresql, connection: {secretRef: {name: orders}}}}}
- apiVersion: config.example.com/v1
  kind: AppConfig
  metadata: {name: shop, namespace: kube-system, finalizers: [finalizer.managedresource.crossplane.io]}
  spec: {forProvider: {application: shop, config: {TITLE: Shop}}}
- apiVersion: storeplane.example.com/v1
  kind: ProviderConfig
  metadata: {name: store, namespace: crossplane-system, finalizers: [in-use.crossplane.io]}
  spec: {bucket: backups}
- apiVersion: batch/v1
  kind: Job
  metadata:
    name: orders-check
    namespace: crossplane-system
    ownerReferences: [{apiVersion: backup.example.com/v1, kind: Backup, name: orders, uid: a, controller: true}]
  spec: &job {template: {spec: {restartPolicy: Never, containers: [{name: app, image: app:v1}]}}}
- apiVersion: batch/v1
  kind: Job
  metadata:
    name: orders-beside
    namespace: crossplane-system
    ownerReferences: [{apiVersion: backup.example.com/v1, kind: Backup, name: orders, uid: a}]
  spec: *job
- apiVersion: batch/v1
  kind: Job
  metadata: {name: install, namespace: crossplane-system}
  spec: *job
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: shop-config-1, namespace: kube-system, labels: {config.example.com/appconfig: shop, app.kubernetes.io/managed-by: storeplane}}
- apiVersion: v1
  kind: Secret
  metadata: {name: shop-config-1, namespace: kube-system, labels: {config.example.com/appconfig: shop, app.kubernetes.io/managed-by: storeplane}}
- apiVersion: v1
  kind: Secret
  metadata:
    name: orders-restore-store
    namespace: crossplane-system
    ownerReferences: [{apiVersion: backup.example.com/v1, kind: Restore, name: orders, uid: a, controller: true}]
- {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: crossplane, namespace: crossplane-system}, spec: {holderIdentity: a}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: dns, namespace: kube-system}}
- {apiVersion: v1, kind: Secret, metadata: {name: dns, namespace: kube-system}}
`

// providerCase is a request with the provider's token, and the refusal that is expected, if any.
type providerCase struct {
	reason string
	do     func(client.Client) error
	want   string
}

// madePod returns the template of a pod as the provider creates it, but for a change.
func madePod(t *testing.T, action backupapi.Action, change func(*workload.Pod)) corev1.PodTemplateSpec {
	t.Helper()
	p := workload.Pod{
		Labels: map[string]string{backupv1.BackupLabel: "orders"},
		Task:   backupapi.Task{Action: action, Method: backupv1.Logical, Namespace: "default", Name: "orders", Database: backupapi.Database{Engine: backupv1.PostgreSQL}},
		Image:  "registry.example.com/backup:postgresql-17", ID: 100,
		Source:  workload.Source{Secret: "db"},
		Store:   workload.Store{Destination: backupv1.Destination{Type: backupv1.S3, Bucket: "b"}, Secret: "orders-store"},
		Account: "orders-backup",
	}
	if change != nil {
		change(&p)
	}
	out, err := p.Template()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// controlled returns the metadata of an object with a controller of this kind, or without one if
// owner is "".
func controlled(owner string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: "made", Namespace: "default"}
	if owner != "" {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: backupv1.GroupVersion.String(), Kind: owner, Name: "orders", UID: "a", Controller: new(true)}}
	}
	return m
}

// testProvider: with the provider's token, whatever its RBAC permissions, a client can change only
// what AppConfigs change in objects that allow it, and nothing else.
func testProvider(t *testing.T, g *gate) {
	g.settings(t, nil)
	var objects []map[string]any
	for _, text := range []string{attacked, left} {
		var more []map[string]any
		if err := yaml.Unmarshal([]byte(text), &more); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, more...)
	}
	for _, o := range objects {
		u := &unstructured.Unstructured{Object: o}
		g.create(t, u)
		if u.GetKind() != "Namespace" {
			t.Cleanup(func() { _ = g.Delete(context.WithoutCancel(t.Context()), u) })
		}
	}
	const (
		fields      = "the provider of Storeplane changes environment variables, volumes of ConfigMaps and Secrets, and annotations of pods, and nothing else of a workload"
		unallowed   = "the workload names no AppConfig that may change it: set its annotation config.example.com/appconfigs"
		annotations = "the provider of Storeplane changes the annotations crossplane.io/paused and storeplane.example.com/… of a claim, and nothing else"
		pods        = "the provider of Storeplane creates and changes NetworkPolicies and ServiceAccounts of Backups and Restores, and no others"
		closed      = "the provider of Storeplane creates NetworkPolicies for the pods of Backups and Restores that admit no connections, and no others"
		system      = " is of the system, and the provider of Storeplane changes nothing there: use another one for Backups, Restores and AppConfigs"
	)
	apply := func(object string) func(client.Client) error {
		return func(c client.Client) error {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(object), &u.Object); err != nil {
				return err
			}
			return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("storeplane-config-shop"), client.ForceOwnership, client.DryRunAll)
		}
	}
	deployment := func(name, spec string) func(client.Client) error {
		return apply("{apiVersion: apps/v1, kind: Deployment, metadata: {name: " + name + ", namespace: default}, spec: " + spec + "}")
	}
	inPod := func(pod string) string { return "{template: {spec: " + pod + "}}" }
	cronJob := func(name, spec string) func(client.Client) error {
		return apply("{apiVersion: batch/v1, kind: CronJob, metadata: {name: " + name + ", namespace: default}, spec: " + spec + "}")
	}
	object := func(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
		u.SetName(name)
		u.SetNamespace(namespace)
		return u
	}
	remove := func(u *unstructured.Unstructured) func(client.Client) error {
		return func(c client.Client) error { return c.Delete(t.Context(), u.DeepCopy(), client.DryRunAll) }
	}
	merge := func(u *unstructured.Unstructured, patch string) func(client.Client) error {
		return func(c client.Client) error {
			return c.Patch(t.Context(), u.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
		}
	}
	status := func(u *unstructured.Unstructured, patch string) func(client.Client) error {
		return func(c client.Client) error {
			return c.Status().Patch(t.Context(), u.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
		}
	}
	pod := func(name string) *unstructured.Unstructured { return object("v1", "Pod", "default", name) }
	shop := object("apps.example.com/v1", "WebApp", "default", "shop")
	store := object("platform.example.com/v1", "EcommercePlatform", "default", "store")
	account := func(name string) *unstructured.Unstructured { return object("v1", "ServiceAccount", "default", name) }
	policy := func(name string) *unstructured.Unstructured {
		return object("networking.k8s.io/v1", "NetworkPolicy", "default", name)
	}
	// open returns a NetworkPolicy that admits all clients.
	open := func(owner string, pods map[string]string) client.Object {
		p := workload.NetworkPolicy(controlled(owner), metav1.LabelSelector{MatchLabels: pods})
		p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
		return p
	}
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "provider.1", Namespace: "crossplane-system"},
		InvolvedObject: corev1.ObjectReference{Kind: "Lease", Namespace: "crossplane-system", Name: "storeplane-provider"},
	}
	backup := object("backup.example.com/v1", "Backup", "crossplane-system", "orders")
	restore := object("backup.example.com/v1", "Restore", "crossplane-system", "orders")
	config := object("config.example.com/v1", "AppConfig", "kube-system", "shop")
	providerConfig := object("storeplane.example.com/v1", "ProviderConfig", "crossplane-system", "store")
	job := func(name string) *unstructured.Unstructured {
		return object("batch/v1", "Job", "crossplane-system", name)
	}
	kubeSystem := func(kind, name string) *unstructured.Unstructured { return object("v1", kind, "kube-system", name) }
	inJob := func(pod string) string { return "{jobTemplate: {spec: {template: {spec: " + pod + "}}}}" }
	create := func(o client.Object) func(client.Client) error {
		return func(c client.Client) error {
			return c.Create(t.Context(), o.DeepCopyObject().(client.Object), client.DryRunAll)
		}
	}
	// ofJob returns a function that creates a Job as the provider does, but for a change.
	ofJob := func(owner string, change func(*corev1.PodSpec)) func(client.Client) error {
		j := workload.Job(controlled(owner), backupapi.Verify, madePod(t, backupapi.Verify, nil))
		if change != nil {
			change(&j.Spec.Template.Spec)
		}
		return create(j)
	}
	ofCronJob := func(change func(*corev1.PodSpec)) *batchv1.CronJob {
		c := workload.CronJob(controlled("Backup"), workload.Schedule{Cron: "0 2 * * *", TimeZone: "Etc/UTC", Period: 24 * time.Hour}, backupapi.Backup, madePod(t, backupapi.Backup, nil))
		change(&c.Spec.JobTemplate.Spec.Template.Spec)
		return c
	}
	const (
		tokenless  = "the provider of Storeplane makes pods that hold no token: of volumes they have emptyDir, Secrets and claims, and no others"
		restricted = "the provider of Storeplane makes restricted pods, and no others"
	)
	const (
		released = `{"metadata":{"finalizers":null}}`
		observed = `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Deleting","lastTransitionTime":"2026-03-01T00:00:00Z"}]}}`
		ours     = `{"metadata":{"labels":{"config.example.com/appconfig":"shop","app.kubernetes.io/managed-by":"storeplane"}}}`
		owned    = `{"metadata":{"ownerReferences":[{"apiVersion":"backup.example.com/v1","kind":"Backup","name":"orders","uid":"a","controller":true}]}}`
	)
	const injected = `{containers: [{name: app, env: [{name: TITLE, valueFrom: {configMapKeyRef: {name: shop-config-1, key: TITLE}}}], volumeMounts: [{name: shop-config, mountPath: /etc/shop}]}],
		volumes: [{name: shop-config, projected: {sources: [{configMap: {name: shop-config-1}}, {secret: {name: shop-config-1}}]}}]}`
	cases := map[string]providerCase{
		"Injects":     {reason: "It is what an AppConfig is for.", do: deployment("open", "{template: {metadata: {annotations: {bundle.config.example.com/shop: shop-config-1}}, spec: "+injected+"}}")},
		"InjectsCron": {reason: "CronJobs too.", do: cronJob("open", "{jobTemplate: {spec: {template: {metadata: {annotations: {a: b}}, spec: {containers: [{name: app, env: [{name: TITLE, valueFrom: {configMapKeyRef: {name: c, key: TITLE}}}]}]}}}}}")},
		"OwnCron": {reason: "A Backup's CronJob is the provider's own.", do: func(c client.Client) error {
			own := ofCronJob(func(*corev1.PodSpec) {})
			own.Name = "backup"
			u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(own)
			if err != nil {
				return err
			}
			unstructured.RemoveNestedField(u, "status")
			return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: u}), client.FieldOwner("storeplane"), client.ForceOwnership, client.DryRunAll)
		}},
		"Closed":        {reason: "It says of no AppConfig that it may change it.", do: deployment("closed", inPod(injected)), want: unallowed},
		"System":        {reason: "Whatever it says: it is the cluster's.", do: apply("{apiVersion: apps/v1, kind: Deployment, metadata: {name: dns, namespace: kube-system}, spec: " + inPod(injected) + "}"), want: "namespace kube-system" + system},
		"SystemMake":    {reason: "Nothing is made there either.", do: apply("{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: crossplane-system}}"), want: "namespace crossplane-system" + system},
		"EscrowMade":    {reason: "A copy of a key is made.", do: apply("{apiVersion: v1, kind: Secret, metadata: {name: shop.sales, namespace: storeplane-escrow}, data: {key: azE=}}")},
		"EscrowChanged": {reason: "Once it is there it stays.", do: apply("{apiVersion: v1, kind: Secret, metadata: {name: shop.orders, namespace: storeplane-escrow}, data: {key: azI=}}"), want: "namespace storeplane-escrow" + system},
		"EscrowDeleted": {reason: "Who has the provider's token takes none away.", do: remove(object("v1", "Secret", "storeplane-escrow", "shop.orders")), want: "namespace storeplane-escrow" + system},
		"EscrowOther":   {reason: "Nothing else is made there.", do: apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: storeplane-escrow}}"), want: "namespace storeplane-escrow" + system},
		"Lease":         {reason: "Two providers agree there on who leads.", do: apply("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: storeplane-provider, namespace: crossplane-system}, spec: {holderIdentity: a}}")},
		"LeaseCreated":  {reason: "It is created where there is none.", do: create(object("coordination.k8s.io/v1", "Lease", "crossplane-system", "storeplane-provider"))},
		"OtherLease":    {reason: "Without its Lease Crossplane stands still.", do: apply("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: crossplane, namespace: crossplane-system}, spec: {holderIdentity: a}}"), want: "namespace crossplane-system" + system},
		"LeaseDeleted":  {reason: "Nor is another's deleted.", do: remove(object("coordination.k8s.io/v1", "Lease", "crossplane-system", "crossplane")), want: "namespace crossplane-system" + system},
		"Event":         {reason: "Events say what happened.", do: create(event)},
		"Image":         {reason: "Another image is another program.", do: deployment("open", inPod("{containers: [{name: app, image: evil:v1}]}")), want: fields},
		"Command":       {reason: "So is another command.", do: deployment("open", inPod("{containers: [{name: app, command: [sh]}]}")), want: fields},
		"Sidecar":       {reason: "So is one more container.", do: deployment("open", inPod("{containers: [{name: more, image: evil:v1}]}")), want: fields},
		"Init":          {reason: "Or one before.", do: deployment("open", inPod("{initContainers: [{name: more, image: evil:v1}]}")), want: fields},
		"Account":       {reason: "Another account has other rights.", do: deployment("open", inPod("{serviceAccountName: admin}")), want: fields},
		"HostNetwork":   {reason: "The node is not the tenant's.", do: deployment("open", inPod("{hostNetwork: true}")), want: fields},
		"HostPath":      {reason: "Nor are its files.", do: deployment("open", inPod("{volumes: [{name: a, hostPath: {path: /}}]}")), want: fields},
		"Token":         {reason: "A token is no configuration.", do: deployment("open", inPod("{volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}")), want: fields},
		"Replicas":      {reason: "How many run is not its business.", do: deployment("open", "{replicas: 0}"), want: fields},
		"Schedule":      {reason: "Nor when.", do: cronJob("open", "{schedule: '@hourly'}"), want: fields},
		"OpensItself":   {reason: "What is allowed is said by others.", do: apply("{apiVersion: apps/v1, kind: Deployment, metadata: {name: open, namespace: default, annotations: {config.example.com/appconfigs: other}}}"), want: fields},
		"Pod":           {reason: "A pod that no StatefulSet has is not in its way.", do: remove(pod("web-x")), want: "the provider of Storeplane deletes pods of StatefulSets, and no others"},
		"StatefulPod":   {reason: "One of a StatefulSet may be.", do: remove(pod("db-0"))},
		"Pause":         {reason: "A claim within a paused one is paused.", do: merge(shop, `{"metadata":{"annotations":{"crossplane.io/paused":"true"}}}`)},
		"ChangesClaim":  {reason: "What a claim asks for is its author's.", do: merge(shop, `{"spec":{"image":"evil:v1"}}`), want: annotations},
		"ChangesShop":   {reason: "A shop's too.", do: merge(store, `{"spec":{"frontend":{"image":"evil:v1"}}}`), want: annotations},
		"PausesShop":    {reason: "It may be paused.", do: merge(store, `{"metadata":{"annotations":{"storeplane.example.com/upgrade":"now","crossplane.io/paused":"true"}}}`)},
		"TakesClaim":    {reason: "An owner that is gone takes the claim with it.", do: merge(shop, owned), want: annotations},
		"FreesClaim":    {reason: "A finalizer keeps what must stay.", do: merge(shop, released), want: annotations},
		"HoldsClaim":    {reason: "Or holds it for ever.", do: merge(store, `{"metadata":{"finalizers":["example.com/evil"]}}`), want: annotations},
		"LabelsClaim":   {reason: "Labels are its author's.", do: merge(shop, `{"metadata":{"labels":{"team":"b"}}}`), want: annotations},
		"Annotates":     {reason: "So are other annotations.", do: merge(shop, `{"metadata":{"annotations":{"crossplane.io/composition-resource-name":"web"}}}`), want: annotations},
		"Reannotates":   {reason: "Also where they are there.", do: merge(shop, `{"metadata":{"annotations":{"team.example.com/owner":"b"}}}`), want: annotations},
		"Unannotates":   {reason: "They stay.", do: merge(shop, `{"metadata":{"annotations":{"team.example.com/owner":null}}}`), want: annotations},

		"AccountOther":     {reason: "Another's account is not the provider's.", do: merge(account("admin"), `{"automountServiceAccountToken":true}`), want: pods},
		"AccountMade":      {reason: "Nor does it make one.", do: create(account("more")), want: pods},
		"AccountTaken":     {reason: "Nor does it make one a Backup's.", do: merge(account("admin"), owned), want: pods},
		"AccountLeft":      {reason: "Nor its own another's.", do: merge(account("orders-dump"), `{"metadata":{"ownerReferences":null}}`), want: pods},
		"AccountOwn":       {reason: "Its own it changes.", do: merge(account("orders-dump"), `{"automountServiceAccountToken":false}`)},
		"AccountIdentity":  {reason: "Its own has no identity of a cloud.", do: merge(account("orders-dump"), `{"metadata":{"annotations":{"eks.amazonaws.com/role-arn":"arn:aws:iam::1:role/admin"}}}`), want: "the provider of Storeplane writes no annotations of NetworkPolicies and ServiceAccounts"},
		"AccountOwnMade":   {reason: "It makes those of Backups.", do: create(&corev1.ServiceAccount{ObjectMeta: controlled("Backup"), AutomountServiceAccountToken: new(false)})},
		"PolicyOther":      {reason: "What closes another's pods stays.", do: merge(policy("closed"), `{"spec":{"ingress":[{}]}}`), want: pods},
		"PolicyTaken":      {reason: "Also as a Backup's.", do: merge(policy("closed"), owned), want: pods},
		"PolicyMade":       {reason: "It opens nothing by another one.", do: create(open("", nil)), want: pods},
		"PolicyIngress":    {reason: "Nor by one of a Backup.", do: create(open("Backup", map[string]string{backupv1.BackupLabel: "orders"})), want: closed},
		"PolicyOpens":      {reason: "Nor by a change of it.", do: merge(policy("orders-dump"), `{"spec":{"ingress":[{}]}}`), want: closed},
		"PolicyOfAll":      {reason: "It closes no pods of others.", do: create(workload.NetworkPolicy(controlled("Restore"), metav1.LabelSelector{})), want: closed},
		"PolicyOwnBackup":  {reason: "The provider makes it.", do: create(workload.NetworkPolicy(controlled("Backup"), metav1.LabelSelector{MatchLabels: map[string]string{backupv1.BackupLabel: "orders"}}))},
		"PolicyOwnRestore": {reason: "And of Restores.", do: create(workload.NetworkPolicy(controlled("Restore"), metav1.LabelSelector{MatchLabels: map[string]string{backupv1.RestoreLabel: "orders"}}))},
		"PolicyChanged":    {reason: "It leads to another store, say.", do: merge(policy("orders-dump"), `{"spec":{"egress":[{"ports":[{"port":443}]}]}}`)},

		"SecretToken":        {reason: "A Secret of that type is another account's token.", do: apply("{apiVersion: v1, kind: Secret, metadata: {name: t, namespace: default, annotations: {kubernetes.io/service-account.name: default}}, type: kubernetes.io/service-account-token}"), want: "the provider of Storeplane makes no tokens of ServiceAccounts"},
		"Secret":             {reason: "Credentials of a store are copied into one.", do: apply("{apiVersion: v1, kind: Secret, metadata: {name: t, namespace: default}, type: Opaque}")},
		"RestoreCopyDeleted": {reason: "What a Restore has left is deleted.", do: remove(object("v1", "Secret", "crossplane-system", "orders-restore-store"))},
		"JobUnowned":         {reason: "A Job without an owner is not the provider's to make.", do: ofJob("", nil), want: "the provider of Storeplane makes Jobs and CronJobs of Backups and Restores, and no others"},
		"JobToken":           {reason: "With a token its account has rights.", do: ofJob("Backup", func(p *corev1.PodSpec) { p.AutomountServiceAccountToken = nil }), want: tokenless},
		"JobProjected": {reason: "However the token comes.", do: ofJob("Restore", func(p *corev1.PodSpec) {
			v := corev1.Volume{Name: "token"}
			v.Projected = &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}
			p.Volumes = append(p.Volumes, v)
		}), want: tokenless},
		"JobHostPath": {reason: "The node's files are not a Job's to use.", do: ofJob("Backup", func(p *corev1.PodSpec) {
			v := corev1.Volume{Name: "root"}
			v.HostPath = &corev1.HostPathVolumeSource{Path: "/"}
			p.Volumes = append(p.Volumes, v)
		}), want: tokenless},
		"JobHost": {reason: "Nor is its network.", do: ofJob("Backup", func(p *corev1.PodSpec) { p.HostNetwork = true }), want: restricted},
		"JobRoot": {reason: "Root of a pod is near to the node's.", do: ofJob("Backup", func(p *corev1.PodSpec) { p.SecurityContext.RunAsNonRoot = nil }), want: restricted},
		"JobCapability": {reason: "What a restricted pod drops is not added.", do: ofJob("Backup", func(p *corev1.PodSpec) {
			p.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"}
		}), want: restricted},
		"JobInit":      {reason: "One before is bound as well.", do: ofJob("Backup", func(p *corev1.PodSpec) { p.InitContainers[0].SecurityContext = nil }), want: restricted},
		"JobPriority":  {reason: "It evicts no other pod.", do: ofJob("Backup", func(p *corev1.PodSpec) { p.PriorityClassName = "system-cluster-critical" }), want: restricted},
		"CronToken":    {reason: "A schedule is a Job later on.", do: create(ofCronJob(func(p *corev1.PodSpec) { p.AutomountServiceAccountToken = new(true) })), want: tokenless},
		"OwnCronToken": {reason: "Nor does one that is there get a token.", do: cronJob("backup", inJob("{automountServiceAccountToken: true, containers: [{name: backup, image: 'evil:v1'}]}")), want: tokenless},

		"BackupReleased":    {reason: "What was there before the policy can be deleted.", do: merge(backup, released)},
		"BackupObserved":    {reason: "Its status says what becomes of it.", do: status(backup, observed)},
		"RestoreReleased":   {reason: "So can a Restore.", do: merge(restore, released)},
		"RestoreObserved":   {reason: "It has a status too.", do: status(restore, observed)},
		"AppConfigReleased": {reason: "So can an AppConfig.", do: merge(config, released)},
		"AppConfigObserved": {reason: "It has a status too.", do: status(config, observed)},
		"StoreReleased":     {reason: "So can what they name.", do: merge(providerConfig, released)},
		"StoreObserved":     {reason: "It has a status too.", do: status(providerConfig, `{"status":{"users":0}}`)},
		"BackupChanged":     {reason: "What is asked for is not the provider's.", do: merge(backup, `{"spec":{"forProvider":{"destination":{"bucket":"other"}}}}`), want: "namespace crossplane-system" + system},
		"BackupChangedToo":  {reason: "Nor beside what is.", do: merge(backup, `{"metadata":{"finalizers":null},"spec":{"forProvider":{"destination":{"bucket":"other"}}}}`), want: "namespace crossplane-system" + system},
		"BackupMade":        {reason: "No new one is made.", do: apply("{apiVersion: backup.example.com/v1, kind: Backup, metadata: {name: more, namespace: crossplane-system}, spec: {forProvider: {source: {type: postgresql, connection: {secretRef: {name: a}}}, destination: {type: s3, bucket: b}}}}"), want: "namespace crossplane-system" + system},
		"BackupDeleted":     {reason: "To delete one is for others.", do: remove(backup), want: "namespace crossplane-system" + system},
		"JobMade":           {reason: "A Job runs whatever it likes.", do: apply("{apiVersion: batch/v1, kind: Job, metadata: {name: more, namespace: crossplane-system, ownerReferences: [{apiVersion: backup.example.com/v1, kind: Backup, name: orders, uid: a, controller: true}]}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: app:v1}]}}}}"), want: "namespace crossplane-system" + system},
		"PodMade":           {reason: "So does a pod.", do: apply("{apiVersion: v1, kind: Pod, metadata: {name: more, namespace: kube-system}, spec: {containers: [{name: app, image: app:v1}]}}"), want: "namespace kube-system" + system},
		"JobChanged":        {reason: "A Job of a Backup is not changed.", do: merge(job("orders-check"), `{"spec":{"parallelism":2}}`), want: "namespace crossplane-system" + system},
		"JobDeleted":        {reason: "But deleted, which ends it.", do: remove(job("orders-check"))},
		"OtherJobDeleted":   {reason: "Another's Job is not.", do: remove(job("install")), want: "namespace crossplane-system" + system},
		"JobBesideDeleted":  {reason: "Nor one that a Backup does not control.", do: remove(job("orders-beside")), want: "namespace crossplane-system" + system},
		"JobTaken":          {reason: "Nor is it made a Backup's.", do: merge(job("install"), owned), want: "namespace crossplane-system" + system},
		"BundleDeleted":     {reason: "An AppConfig's bundle is deleted with it.", do: remove(kubeSystem("ConfigMap", "shop-config-1"))},
		"BundlesSecret":     {reason: "And its Secret.", do: remove(kubeSystem("Secret", "shop-config-1"))},
		"BundleChanged":     {reason: "What pods read is not changed.", do: merge(kubeSystem("ConfigMap", "shop-config-1"), `{"data":{"TITLE":"x"}}`), want: "namespace kube-system" + system},
		"ConfigMapDeleted":  {reason: "Another's ConfigMap is not deleted.", do: remove(kubeSystem("ConfigMap", "dns")), want: "namespace kube-system" + system},
		"SecretDeleted":     {reason: "Nor is its Secret.", do: remove(kubeSystem("Secret", "dns")), want: "namespace kube-system" + system},
		"ConfigMapTaken":    {reason: "Nor is it made an AppConfig's.", do: merge(kubeSystem("ConfigMap", "dns"), ours), want: "namespace kube-system" + system},
	}
	// All objects that the provider itself creates are accepted.
	for _, action := range []backupapi.Action{backupapi.Check, backupapi.Backup, backupapi.Verify, backupapi.Restore, backupapi.Delete} {
		for name, change := range map[string]func(*workload.Pod){
			"":    nil,
			"URI": func(p *workload.Pod) { p.Source.Key = "url" },
			"Key": func(p *workload.Pod) { p.Key = &backupv1.SecretKey{Name: "age", Key: "key"} },
			"Volume": func(p *workload.Pod) {
				p.Store.Destination = backupv1.Destination{Type: backupv1.Volume, Bucket: "nfs"}
			},
			"Scratch":  func(p *workload.Pod) { p.Scratch = &workload.Scratch{Size: resource.MustParse("1Gi")} },
			"Account":  func(p *workload.Pod) { p.Account = "store" },
			"NoSecret": func(p *workload.Pod) { p.Store.Secret = "" },
			"HasResources": func(p *workload.Pod) {
				p.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
			},
		} {
			for _, owner := range []string{"Backup", "Restore"} {
				once := workload.Job(controlled(owner), action, madePod(t, action, change))
				workload.Once(once)
				cases["Own"+string(action)+name+owner] = providerCase{reason: "The provider makes it.", do: create(once)}
			}
			cron := workload.CronJob(controlled("Backup"), workload.Schedule{Cron: "0 2 * * *", TimeZone: "Etc/UTC", Period: 24 * time.Hour}, action, madePod(t, action, change))
			cases["OwnCron"+string(action)+name] = providerCase{reason: "On a schedule too.", do: create(cron)}
		}
	}
	// The API server applies policies a moment after they were created.
	planetest.Eventually(t, soon, "the policies are known", func() error {
		for _, name := range []string{"Image", "SystemMake", "Pod", "JobUnowned", "AccountMade"} {
			if cases[name].do(g.providing) == nil {
				return errors.New(name + " is let through")
			}
		}
		return nil
	})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := refusal(tc.do(g.providing)); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
			// The policies do not apply to other users.
			if err := tc.do(g.Client); kerrors.IsForbidden(err) && strings.Contains(fmt.Sprint(err), "storeplane-provider") {
				t.Errorf("%s\nsomebody else is refused: %v", tc.reason, err)
			}
		})
	}
}
