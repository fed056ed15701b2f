package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WebAppSpec is a stateless HTTP application.
//
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || self.replicas <= 10 || (has(self.environment) && self.environment != 'production')",message="replicas may be at most 10 (more only where environment is development or staging)"
// +kubebuilder:validation:XValidation:rule="!has(self.autoscaling) || self.autoscaling.maxReplicas <= 10 || (has(self.environment) && self.environment != 'production')",message="autoscaling.maxReplicas may be at most 10 (more only where environment is development or staging)"
// +kubebuilder:validation:XValidation:rule="!has(self.workers) || (has(self.environment) && self.environment != 'production') || self.workers.all(w, (!has(w.replicas) || w.replicas <= 10) && (!has(w.autoscaling) || w.autoscaling.maxReplicas <= 10))",message="workers: replicas and autoscaling.maxReplicas may be at most 10 (more only where environment is development or staging)"
// +kubebuilder:validation:XValidation:rule="!has(self.podSecurity) || self.podSecurity != 'baseline' || !has(self.environment) || self.environment != 'production'",message="podSecurity may be baseline only where environment is not production: use an image that runs as a user other than root"
type WebAppSpec struct {
	Workload `json:",inline"`

	// Environment whose defaults apply: resources, disruption budget, spread
	// over nodes. Defaults to development's, with at most 10 replicas.
	// +optional
	Environment Environment `json:"environment,omitempty"`

	// Maintenance is when a new release of Storeplane, or new settings of the installation, may
	// replace the claim's pods. Defaults to the installation's window for the environment, and
	// without one to any time.
	// +optional
	Maintenance *Maintenance `json:"maintenance,omitempty"`

	// Replicas is the number of pods, 1 to 10, which kubectl scale and
	// autoscalers of the claim set too. Ignored while autoscaling is set.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty"`

	// Ingress exposes the application outside the cluster.
	// +optional
	Ingress *Ingress `json:"ingress,omitempty"`

	// Config is handed to the application as environment variables, and kept
	// in the ConfigMap <claim>-config. A change rolls the pods; if they do not
	// become healthy with it, the last config that worked is put back.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Config map[string]string `json:"config,omitempty"`

	// Migration runs to its end before a new image is rolled out.
	// +optional
	Migration *Migration `json:"migration,omitempty"`

	// CronJobs of the application.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	CronJobs []CronJob `json:"cronJobs,omitempty"`

	// Workers of the application: pods without a Service.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	Workers []Worker `json:"workers,omitempty"`

	// Clients restricts who reaches the application's pods to pods of the
	// same namespace that carry all of these labels. Without it, all pods of
	// the namespace do, and where there is an ingress its controller.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Clients map[string]string `json:"clients,omitempty"`
}

// WebAppPhase is the state of a WebApp in one word.
//
// +kubebuilder:validation:Enum=Pending;Deploying;Running;Degraded;Failed
type WebAppPhase string

// WebAppStatus is the observed state of a WebApp.
type WebAppStatus struct {
	CommonStatus `json:",inline"`

	// Phase in one word: Pending (nothing is there yet), Deploying (a change
	// is on its way), Running, Degraded (what was healthy is not any more) or
	// Failed.
	// +optional
	Phase WebAppPhase `json:"phase,omitempty"`

	// Endpoint is the URL inside the cluster.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// URL outside the cluster, when there is an ingress.
	// +optional
	URL string `json:"url,omitempty"`

	// Image that the pods run or are rolled to. It lags behind spec.image
	// while a migration is under way.
	// +optional
	Image string `json:"image,omitempty"`

	// Config that the pods run, where the claim has one.
	// +optional
	Config *ConfigStatus `json:"config,omitempty"`

	// Replicas is the number of pods that there are.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Selector of the pods that take requests, as text: an autoscaler that scales the
	// claim reads their metrics.
	// +optional
	Selector string `json:"selector,omitempty"`

	// AvailableReplicas is the number of pods that take requests.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// CronJobs of the application, and how they went.
	// +optional
	CronJobs []CronJobStatus `json:"cronJobs,omitempty"`

	// Workers of the application.
	// +optional
	Workers []WorkerStatus `json:"workers,omitempty"`
}

// CronJobResult is how a CronJob's last run went, in one word.
//
// +kubebuilder:validation:Enum=Succeeded;Failed;Running
type CronJobResult string

// The results of a CronJob's last run.
const (
	// CronJobSucceeded ended well.
	CronJobSucceeded CronJobResult = "Succeeded"
	// CronJobFailed ended, and not well.
	CronJobFailed CronJobResult = "Failed"
	// CronJobRunning has not ended.
	CronJobRunning CronJobResult = "Running"
)

// CronJobStatus is what is known of a CronJob's runs.
type CronJobStatus struct {
	// Name of the job in spec.cronJobs.
	Name string `json:"name"`

	// LastResult of its runs: Running (one is going), Succeeded or Failed
	// (none is going, and one has ended well since the last one was due, or
	// not). Empty before the first. With concurrencyPolicy Allow a run that
	// was due earlier and ended later counts too.
	// +optional
	LastResult CronJobResult `json:"lastResult,omitempty"`

	// LastScheduleTime is when the last run was due.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// LastSuccessfulTime is when a run last ended well.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`

	// Active is the number of runs that are going.
	// +optional
	Active int32 `json:"active,omitempty"`

	// Suspended is true while no more runs are started: because the claim suspends the CronJob, or
	// because the application has yet to become healthy for the first time.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
}

// WorkerStatus is what is known of a worker.
type WorkerStatus struct {
	// Name of the worker in spec.workers.
	Name string `json:"name"`

	// AvailableReplicas is the number of its pods that run.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
}

// WebApp is a stateless HTTP application: pods behind a Service, with probes,
// disruption budget, network policy, and when asked for an ingress, migration,
// CronJobs, workers and autoscaling.
//
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=wa,categories={storeplane}
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.status.image`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="metadata.name may have at most 40 characters, so that the names made from it fit"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and hold only lower-case letters, digits and hyphens, since Services are named after it"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.cronJobs) || self.spec.cronJobs.all(c, self.metadata.name.size() + c.name.size() <= 46)",message="metadata.name and a cronJobs name together may have at most 46 characters, so that <claim>-cron-<name> fits a CronJob"
type WebApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the application team asks for.
	Spec WebAppSpec `json:"spec"`

	// Status is what Storeplane observed.
	// +optional
	Status WebAppStatus `json:"status,omitempty"`
}
