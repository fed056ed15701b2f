package backup

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/controller/workload"
)

// template returns the template of the pods for an action.
func (s *State) template(a backup.Action) (corev1.PodTemplateSpec, error) {
	if s.byCluster() {
		return s.derived(a).Template()
	}
	flavour, err := workload.FlavourOf(s.params().Source.Type, s.Source.Version)
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	pod := workload.Pod{
		Labels:    labels(s.Backup),
		Task:      s.task(a),
		Image:     flavour.Image(s.Images),
		ID:        flavour.ID,
		Source:    s.Source.Source,
		Store:     s.Store.Store,
		Account:   cmp.Or(s.Store.ServiceAccount, objectName(s.Backup.Name)),
		Resources: s.params().Resources,
		Scratch:   s.scratch(s.copySize()),
		ThrowAway: s.throwAway(),
	}
	if e := s.encryption(); e != nil {
		pod.Key = &e.SecretRef
	}
	return pod.Template()
}

// throwAway returns the image of the throw-away server if it is another one than that of the tools: the
// databases of a DatabaseCluster of MySQL may have what MariaDB does not.
func (s *State) throwAway() string {
	if s.params().Source.Type != backupv1.MySQL || s.Source.Cluster == "" || s.Source.Version == "" {
		return ""
	}
	return s.Images.Image(string(backupv1.MySQL) + ":" + s.Source.Version)
}

// task returns the Task of the pods for an action.
func (s *State) task(a backup.Action) backup.Task {
	p := s.params()
	t := backup.Task{
		Action:      a,
		Method:      cmp.Or(s.params().Method, backupv1.Logical),
		Namespace:   s.Backup.Namespace,
		Name:        s.Backup.Name,
		Database:    backup.Database{Engine: p.Source.Type, Databases: p.Source.Databases},
		Destination: s.Store.Destination,
		// Deleting needs no key, and its pods have none.
		Encrypted: s.encryption() != nil && a != backup.Delete,
	}
	if a == backup.Backup {
		t.Retention, t.Keep, t.TimeZone, t.Compression = p.Retention, p.Keep, p.TimeZone, p.Compression
	}
	s.query(&t)
	return t
}

// here returns the State in which Runs have no reports of another place: a Job that began before the
// destination was changed lists the store of before, and may end after the first one that lists this
// one.
func (s *State) here() *State {
	place := s.place()
	if place == "" {
		return s
	}
	out := *s
	out.Runs = slices.Clone(s.Runs)
	for i, r := range out.Runs {
		if r.Report == nil || r.Report.Place == "" || r.Report.Place == place {
			continue
		}
		report := *r.Report
		report.Backup, report.Catalog = nil, nil
		out.Runs[i].Report = &report
	}
	return &out
}

// place returns the place of the backups, or "" while it is not known.
func (s *State) place() string {
	if !s.byCluster() {
		if s.Store.Destination.Type == "" {
			return ""
		}
		t := s.task(backup.Check)
		return t.Place()
	}
	crons := s.foreign()
	if len(crons) == 0 {
		return ""
	}
	t, err := s.derived(backup.Check).Task()
	if err != nil {
		return ""
	}
	return t.Place()
}

// query sets the query of a verification.
func (s *State) query(t *backup.Task) {
	if v := s.verification(); t.Action == backup.Verify {
		t.Query, t.QueryDatabase = v.Query, v.Database
	}
}

// derived returns the pod for an action that is derived from a CronJob of the DatabaseCluster.
func (s *State) derived(a backup.Action) workload.Derived {
	storage := s.Cluster.Storage
	return workload.Derived{
		From: full(s.foreign()),
		Change: func(t *backup.Task) {
			t.Action = a
			s.query(t)
		},
		Resources: s.params().Resources,
		Scratch:   s.scratch(&storage),
	}
}

// full returns the CronJob of full backups, which its name shows, or else the first one. There must
// be one.
func full(crons []*batchv1.CronJob) *batchv1.CronJob {
	slices.SortFunc(crons, func(a, b *batchv1.CronJob) int {
		isFull := func(c *batchv1.CronJob) int {
			if strings.HasSuffix(c.Name, "-full") {
				return 0
			}
			return 1
		}
		return cmp.Or(isFull(a)-isFull(b), cmp.Compare(a.Name, b.Name))
	})
	return crons[0]
}

// scratch returns the volume of the throw-away server, or nil if no size is set.
func (s *State) scratch(otherwise *resource.Quantity) *workload.Scratch {
	v := s.verification()
	size := v.Storage
	if size == nil {
		size = otherwise
	}
	if size == nil || size.IsZero() {
		return nil
	}
	return &workload.Scratch{Size: *size, Class: v.StorageClassName}
}

// copySize returns the size of the volume for a copy where the Backup sets none: that of the servers' own, which
// the copy fits. It is nil for dumps.
func (s *State) copySize() *resource.Quantity {
	if !s.copies() {
		return nil
	}
	return &s.Cluster.Storage
}

// digest returns the digest of what is reached. A new digest requires a new check.
func (s *State) digest() (string, error) {
	pod, err := s.template(backup.Check)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(pod)
	if err != nil {
		return "", err
	}
	return build.Digest(string(b), s.Source.Print, s.Store.Print, s.Key), nil
}
