package databasecluster

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	k8sappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/label"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// live is the part of the observed objects that the function reads.
type live struct {
	exists bool
	set    statefulSet

	// repository is the StatefulSet that serves the backups' volume, namedClaim the one that does so
	// beside it, and source the one that serves the volume to restore from.
	repository, namedClaim, source statefulSet

	// created is when the claim was created, and timeline the last one in its status, or 0 before a
	// server has been primary.
	created  time.Time
	timeline int64

	// watcher is the status of the Backup. dumper is true if there is a Secret by which it connects.
	watcher backupStatus
	dumper  bool

	// desired is the last desired state of the instance managers. cluster and members are what
	// they report, members by pod.
	desired instance.Desired
	cluster instance.Cluster
	members map[string]instance.Member

	// credentials is the resource version of the Secret credentials.
	credentials string

	// now is the time, for retries.
	now time.Time

	// jobs are the Jobs of backups that are not scheduled, by component. scheduled is true if a
	// scheduled backup is running; it is read only while the volume of the backups is full.
	jobs      map[string]batchv1.JobStatus
	scheduled bool

	// podFailure is the reason why pods do not become ready, while none of them is.
	podFailure string
}

type statefulSet struct {
	exists bool

	Metadata struct {
		Generation int64             `json:"generation"`
		Labels     map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Replicas             int32                             `json:"replicas"`
		PodManagementPolicy  k8sappsv1.PodManagementPolicyType `json:"podManagementPolicy"`
		VolumeClaimTemplates []corev1.PersistentVolumeClaim    `json:"volumeClaimTemplates"`
	} `json:"spec"`
	Status k8sappsv1.StatefulSetStatus `json:"status"`
}

// backupStatus is the part of a Backup's status that the function reads.
type backupStatus struct {
	exists bool

	Spec struct {
		ForProvider struct {
			Method string `json:"method"`
		} `json:"forProvider"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
		AtProvider struct {
			LastSuccessfulTime string `json:"lastSuccessfulTime"`
			CatalogTime        string `json:"catalogTime"`
			Count              int32  `json:"count"`
			LastFailure        *struct {
				Reason  string `json:"reason"`
				Message string `json:"message"`
			} `json:"lastFailure"`
		} `json:"atProvider"`
	} `json:"status"`
}

// isEmpty reports whether the store is known to have no backup that was made since a time.
func (b *backupStatus) isEmpty(since time.Time) bool {
	p := &b.Status.AtProvider
	return p.CatalogTime != "" && (p.Count == 0 || b.isOlder(since))
}

// hasSince reports whether the store is known to have a backup that was made since a time.
func (b *backupStatus) hasSince(since time.Time) bool {
	p := &b.Status.AtProvider
	return p.CatalogTime != "" && p.Count > 0 && !b.isOlder(since)
}

// isOlder reports whether the newest backup was made before a time.
func (b *backupStatus) isOlder(than time.Time) bool {
	last, err := time.Parse(time.RFC3339, b.Status.AtProvider.LastSuccessfulTime)
	return err == nil && last.Before(than)
}

// isPlain reports whether backups that should have a generated key began without one.
func (b *backupStatus) isPlain() bool {
	for _, c := range b.Status.Conditions {
		if c.Type == backupv1.TypeEscrowed {
			return c.Status == "True" && c.Message != ""
		}
	}
	return false
}

// isOverdue reports whether the newest backup is too old, though no backup failed: none has run.
func (b *backupStatus) isOverdue() bool {
	for _, c := range b.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "False" && c.Reason == backupv1.ReasonBackupOverdue
		}
	}
	return false
}

// condition returns whether the condition of a type is True, whether it is False, and its message.
func (b *backupStatus) condition(typ string) (yes, no bool, words string) {
	for _, c := range b.Status.Conditions {
		if c.Type == typ {
			return c.Status == "True", c.Status == "False", cmp.Or(c.Message, c.Reason)
		}
	}
	return false, false, ""
}

func observe(c *compose.Claim, s build.Scope, t *engine.Traits) (*live, error) {
	l := &live{members: map[string]instance.Member{}, jobs: map[string]batchv1.JobStatus{}, now: c.Now(), created: c.Created(), timeline: c.StatusNumber("timeline")}
	var err error
	if l.exists, err = c.ReadObserved(t.Name, &l.set); err != nil {
		return nil, err
	}
	for component, set := range map[string]*statefulSet{repository: &l.repository, namedClaim: &l.namedClaim, sourceServer: &l.source} {
		if set.exists, err = c.ReadObserved(component, set); err != nil {
			return nil, err
		}
	}
	if l.watcher.exists, err = c.ReadObserved(backups, &l.watcher); err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(c.ObservedComponents(backupFirst+"-"), c.ObservedComponents(backupGap+"-"), c.ObservedComponents(backupRoom+"-")) {
		var job batchv1.Job
		if _, err = c.ReadObserved(name, &job); err != nil {
			return nil, err
		}
		l.jobs[name] = job.Status
	}
	l.dumper = c.Observed(dumper) != nil
	l.credentials = metadata(c.Observed(credentials), "resourceVersion")
	// What cannot be read counts as not written yet: it is written again.
	_ = json.Unmarshal([]byte(datum(c.Observed(config), instance.DesiredKey)), &l.desired)
	for key, v := range c.Observed(instances).GetFields()["data"].GetStructValue().GetFields() {
		switch pod := instance.PodOf(key); {
		case key == instance.ClusterKey:
			_ = json.Unmarshal([]byte(v.GetStringValue()), &l.cluster)
		case pod != "":
			var m instance.Member
			if json.Unmarshal([]byte(v.GetStringValue()), &m) == nil && instance.Ordinal(pod) < max(l.set.Spec.Replicas, l.desired.Size) {
				l.members[pod] = m
			}
		}
	}
	if !l.cluster.Of(metadata(c.Observed(t.Name), "uid"), c.UID()) {
		l.cluster = instance.Cluster{}
	}
	if a := l.cluster.Archive; a != nil && a.Full {
		if l.scheduled, err = scheduledAtWork(c); err != nil {
			return nil, err
		}
	}
	if l.cluster.System == "" {
		// Reports may be rewritten from scratch, but the system identifier of
		// a cluster never changes.
		l.cluster.Stanza = annotation(c.Observed(backupFull), systemAnnotation)
		l.cluster.System = pgbackrest.System(l.cluster.Stanza)
	}
	// While one server is ready its instance manager reports on the others. Pods that run are not
	// requested, since Patroni writes to them all the time.
	if l.exists && l.set.Spec.Replicas > 0 && l.set.Status.ReadyReplicas == 0 && !isStarting(c, len(l.members) > 0 && l.cluster.Primary == "") {
		pods, _ := c.Require("pods", podsOf(s, t))
		l.podFailure = health.FailureOf(pods)
	}
	return l, nil
}

// startGrace is how long the first server may take before its pods are requested, and runGrace where
// its instance manager has reported and there has been no primary yet: its pod has been scheduled then,
// and runs.
const (
	startGrace = 8 * time.Second
	runGrace   = 20 * time.Second
)

// isStarting reports whether the first server is within its grace, in which its pods change all the
// time. If the claim's status reports a pod failure they are requested at once.
func isStarting(c *compose.Claim, reported bool) bool {
	grace := startGrace
	if reported {
		grace = runGrace
	}
	age, known := c.NotReadyFor()
	if !known || age >= grace || c.PodFailure() != "" {
		return false
	}
	c.RequeueWithin(grace - age + time.Second)
	return true
}

// scheduledAtWork reports whether a scheduled backup is running.
func scheduledAtWork(c *compose.Claim) (bool, error) {
	for _, name := range []string{backupFull, backupIncr} {
		var cron struct {
			Status batchv1.CronJobStatus `json:"status"`
		}
		if _, err := c.ReadObserved(name, &cron); err != nil || len(cron.Status.Active) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

func podsOf(s build.Scope, t *engine.Traits) *fnv1.ResourceSelector {
	return &fnv1.ResourceSelector{
		ApiVersion: "v1", Kind: "Pod", Namespace: &s.Namespace,
		Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{t.ScopeLabel: s.Name(t.Name)}}},
	}
}

func metadata(obj *structpb.Struct, field string) string {
	return obj.GetFields()["metadata"].GetStructValue().GetFields()[field].GetStringValue()
}

func annotation(obj *structpb.Struct, key string) string {
	return obj.GetFields()["metadata"].GetStructValue().GetFields()["annotations"].GetStructValue().GetFields()[key].GetStringValue()
}

func datum(configMap *structpb.Struct, key string) string {
	return configMap.GetFields()["data"].GetStructValue().GetFields()[key].GetStringValue()
}

// version returns the version that the servers were last rolled to.
func (l *live) version() string { return l.set.Metadata.Labels[label.Version] }

// running returns what is known of the servers' versions.
func (l *live) running() engine.Running {
	r := engine.Running{Ran: len(l.members) > 0 || l.cluster.Primary != "", Rolled: l.version()}
	for _, m := range l.members {
		r.Reported = append(r.Reported, m.Version)
	}
	return r
}

// primary returns the pod that takes writes, or "" if no server is ready, or if one of them has
// found no leader since that primary led. Only a primary reports on the cluster.
func (l *live) primary() string {
	reign := l.cluster.Reign()
	for _, m := range l.members {
		if reign != "" && m.Leaderless == reign {
			return ""
		}
	}
	if l.set.Status.ReadyReplicas == 0 {
		return ""
	}
	return l.cluster.Primary
}

// last returns how many servers are needed so that all are among them that the last
// primary reported and that had followed it: a new standby has no writes. It returns 0 if
// there are none. The volume of the primary has every write, unless another server took
// over later and did not report.
func (l *live) last() int32 {
	if l.cluster.Primary == "" {
		return 0
	}
	highest := instance.Ordinal(l.cluster.Primary)
	for _, s := range l.cluster.Standbys {
		if s.New {
			continue
		}
		highest = max(highest, instance.Ordinal(s.Name))
	}
	if highest >= maxSize {
		return 0
	}
	return highest + 1
}

// compared returns how many servers are needed to compare all volumes of this
// name, until one leads, or 0. What others reported before the last primary led is old.
func (l *live) compared() int32 {
	most := int32(0)
	for _, m := range l.members {
		most = max(most, m.Servers)
	}
	former := l.cluster.Primary
	removed := instance.Ordinal(former) >= l.set.Spec.Replicas
	if former != "" && (l.primary() != "" || l.members[former].Servers == 0 && !removed) || most > maxSize {
		return 0
	}
	return most
}

// held returns why servers are not started: the first reason for which a user has to
// decide, or else the first one.
func (d *inputs) held() instance.Held {
	var first instance.Held
	for i := range int32(maxSize) {
		h := d.live.members[d.podName(i)].Held
		if h != nil && (first.Message == "" || h.Undecided && !first.Undecided) {
			first = *h
		}
	}
	return first
}

// isOutdated reports whether pods of an older revision are left.
func (l *live) isOutdated() bool { return l.set.Status.UpdatedReplicas < l.set.Status.Replicas }

// podName returns the name of the pod of an ordinal.
func (d *inputs) podName(ordinal int32) string {
	return instance.Pod(d.Name(d.server), ordinal)
}

// storage returns the size that each volume has or was to have, whichever is larger, and
// whether there are volumes.
func (l *live) storage() (resource.Quantity, bool) {
	var have resource.Quantity
	for _, t := range l.set.Spec.VolumeClaimTemplates {
		have = t.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	if desired, err := resource.ParseQuantity(l.desired.Storage); err == nil && desired.Cmp(have) > 0 {
		have = desired
	}
	return have, len(l.set.Spec.VolumeClaimTemplates) > 0
}

// understands reports whether all instance managers speak a version of the protocol that
// this release speaks, too.
func (l *live) understands() bool {
	_, all := instance.Negotiate(l.members, instance.OldestProtocol, instance.Protocol)
	return all
}
