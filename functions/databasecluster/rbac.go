package databasecluster

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/instance"
)

// maxSize is the largest number of servers.
const maxSize = instance.MaxSize

// role is what Patroni needs with its state in ConfigMaps
// (https://github.com/patroni/patroni/blob/master/kubernetes/patroni_k8s.yaml),
// whose objects are made while it runs and can not be named here, and what the
// instance managers need, all of it of this cluster's own objects alone.
func (d *cluster) role() *rbacv1.Role {
	var pods, volumes []string
	for i := range int32(maxSize) {
		pods = append(pods, d.podName(i))
		volumes = append(volumes, "data-"+d.podName(i))
	}
	if d.backup.own {
		volumes = append(volumes, d.repositoryClaim())
	}
	named := func(group, resource string, names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
	}
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: d.Meta(d.server, d.server),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get", "list", "patch", "update", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "patch", "update", "watch"}},
			// To replace servers one at a time.
			named("", "pods", pods, "delete"),
			named("apps", "statefulsets", []string{d.Name(d.server)}, "get", "list", "watch"),
			// To grow volumes.
			named("", "persistentvolumeclaims", volumes, "get", "list", "patch", "watch"),
			// To set passwords.
			named("", "secrets", []string{d.Name(credentials)}, "get", "list", "watch"),
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}},
		},
	}
}

func (d *cluster) roleBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: d.Meta(d.server, d.server),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: d.Name(d.server)},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: d.Name(d.server), Namespace: d.Namespace}},
	}
}
