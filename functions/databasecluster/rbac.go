package databasecluster

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/instance"
)

// maxSize is the largest number of servers.
const maxSize = instance.MaxSize

// role returns the rights that Patroni, with its state in ConfigMaps, and the instance managers
// need. They are limited to this cluster's own objects: with a server's token nothing else in the
// namespace can be changed. Patroni's example grants more
// (https://github.com/patroni/patroni/blob/master/kubernetes/patroni_k8s.yaml), since it does not
// name the objects that Patroni changes. Lists and watches by label cannot be limited to names, nor
// can the creation of objects:
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources.
func (d *cluster) role() *rbacv1.Role {
	var pods, volumes []string
	for i := range int32(maxSize) {
		pods = append(pods, d.podName(i))
		volumes = append(volumes, instance.VolumeClaim(d.podName(i)))
	}
	// The desired state, the reports of the managers, and the state that the engine keeps.
	set := d.Name(d.server)
	states := append([]string{set, instance.StatusName(set)}, d.traits.States(set)...)
	if d.backup.own {
		volumes = append(volumes, d.repositoryClaim())
	}
	named := func(group, resource string, names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
	}
	configMaps := []string{"list", "watch"}
	if d.traits.LockCreated {
		configMaps = append([]string{"create"}, configMaps...)
	}
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: d.Meta(d.server, d.server),
		Rules: []rbacv1.PolicyRule{
			named("", "configmaps", states, "get", "patch", "update"),
			named("", "configmaps", nil, configMaps...),
			// To label pods with their role, and to replace them one at a time. Which fields may be
			// changed is limited by package/install/servers-admission.yaml.
			named("", "pods", pods, "get", "patch", "delete"),
			named("", "pods", nil, "list", "watch"),
			named("apps", "statefulsets", []string{d.Name(d.server)}, "get", "list", "watch"),
			// To expand volumes.
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
