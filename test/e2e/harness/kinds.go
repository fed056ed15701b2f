package harness

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func v1of(group, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
}

// kinds are the resources that the tests read or change, by kind.
var kinds = map[string]schema.GroupVersionResource{
	"EcommercePlatform": v1of("platform.example.com", "ecommerceplatforms"),
	"DatabaseCluster":   v1of("apps.example.com", "databaseclusters"),
	"WebApp":            v1of("apps.example.com", "webapps"),

	"Backup":         v1of("backup.example.com", "backups"),
	"Restore":        v1of("backup.example.com", "restores"),
	"RestoreGrant":   v1of("backup.example.com", "restoregrants"),
	"AppConfig":      v1of("config.example.com", "appconfigs"),
	"ProviderConfig": v1of("storeplane.example.com", "providerconfigs"),

	"StatefulSet":             v1of("apps", "statefulsets"),
	"Deployment":              v1of("apps", "deployments"),
	"DaemonSet":               v1of("apps", "daemonsets"),
	"Job":                     v1of("batch", "jobs"),
	"CronJob":                 v1of("batch", "cronjobs"),
	"Pod":                     core("pods"),
	"Service":                 core("services"),
	"Secret":                  core("secrets"),
	"ConfigMap":               core("configmaps"),
	"ServiceAccount":          core("serviceaccounts"),
	"PersistentVolumeClaim":   core("persistentvolumeclaims"),
	"ResourceQuota":           core("resourcequotas"),
	"LimitRange":              core("limitranges"),
	"Ingress":                 v1of("networking.k8s.io", "ingresses"),
	"NetworkPolicy":           v1of("networking.k8s.io", "networkpolicies"),
	"PodDisruptionBudget":     v1of("policy", "poddisruptionbudgets"),
	"Usage":                   {Group: "protection.crossplane.io", Version: "v1beta1", Resource: "usages"},
	"HorizontalPodAutoscaler": {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
	"Role":                    v1of("rbac.authorization.k8s.io", "roles"),
	"RoleBinding":             v1of("rbac.authorization.k8s.io", "rolebindings"),

	"Namespace":                   core("namespaces"),
	"CompositeResourceDefinition": {Group: "apiextensions.crossplane.io", Version: "v2", Resource: "compositeresourcedefinitions"},
	"Composition":                 v1of("apiextensions.crossplane.io", "compositions"),
	"EnvironmentConfig":           {Group: "apiextensions.crossplane.io", Version: "v1beta1", Resource: "environmentconfigs"},
	"Function":                    v1of("pkg.crossplane.io", "functions"),
	"Configuration":               v1of("pkg.crossplane.io", "configurations"),
	"Provider":                    v1of("pkg.crossplane.io", "providers"),
	"ClusterProviderConfig":       v1of("storeplane.example.com", "clusterproviderconfigs"),

	"Node":                           core("nodes"),
	"IngressClass":                   v1of("networking.k8s.io", "ingressclasses"),
	"ClusterRole":                    v1of("rbac.authorization.k8s.io", "clusterroles"),
	"ClusterRoleBinding":             v1of("rbac.authorization.k8s.io", "clusterrolebindings"),
	"MutatingAdmissionPolicy":        v1of("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
	"MutatingAdmissionPolicyBinding": v1of("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
}

// clusterScoped are the kinds without a namespace.
var clusterScoped = map[string]bool{
	"Namespace": true, "CompositeResourceDefinition": true, "Composition": true, "EnvironmentConfig": true, "Function": true, "Configuration": true,
	"Provider": true, "ClusterProviderConfig": true,
	"Node": true, "IngressClass": true, "ClusterRole": true, "ClusterRoleBinding": true,
	"MutatingAdmissionPolicy": true, "MutatingAdmissionPolicyBinding": true,
}

// APIVersion returns the API version of a kind that the tests read or change.
func APIVersion(kind string) string { return kinds[kind].GroupVersion().String() }
