package manager

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
)

// TestOwn: a restore never starts on data that an earlier cluster left.
func TestOwn(t *testing.T) {
	const me, other = "dbc", "another"
	members := text(t, instance.Cluster{Primary: setName + "-0", Standbys: []instance.Standby{{Name: setName + "-1"}}})
	reports := map[string]string{instance.ClusterKey: members}
	refusedReports := map[string]string{instance.ClusterKey: members, instance.MemberKey(setName + "-1"): text(t, instance.Member{Message: "why", Restore: &instance.RestoreState{Message: "why", Failed: true}})}
	cases := map[string]struct {
		reason    string
		restored  bool // the cluster begins with a restored backup
		restoring bool // and is not restored yet
		files     map[string]string
		reports   map[string]string // content of the status ConfigMap
		failed    bool
		gone      string
	}{
		"New":         {reason: "Any cluster may use an empty volume."},
		"NewRestore":  {reason: "It may be restored to.", restored: true, restoring: true},
		"EmptyFolder": {reason: "So may an empty folder.", restored: true, restoring: true, files: map[string]string{"pgdata/": ""}},
		"Adopted":     {reason: "A new claim goes on with the data of an earlier one of its name.", files: map[string]string{ownerFile: other, "pgdata/PG_VERSION": "17"}},
		"Older":       {reason: "Volumes of before have no owner.", files: map[string]string{"pgdata/PG_VERSION": "17"}},
		"Occupied":    {reason: "Nothing is restored over what another cluster left.", restored: true, restoring: true, files: map[string]string{ownerFile: other, "pgdata/PG_VERSION": "17"}, failed: true},
		"Unowned":     {reason: "Nor over files of an unknown cluster.", restored: true, restoring: true, files: map[string]string{"pgdata/base/1": ""}, failed: true},
		"Follows":     {reason: "A server with another cluster's data does not follow one that was restored.", restored: true, files: map[string]string{ownerFile: other, "pgdata/PG_VERSION": "17"}, failed: true},
		"Restarted":   {reason: "A pod that is restarted in a restore goes on with it.", restored: true, restoring: true, files: map[string]string{ownerFile: me, "pgdata/PG_VERSION": "17"}},
		"Done":        {reason: "One that was restored goes on.", restored: true, files: map[string]string{ownerFile: me, "pgdata/PG_VERSION": "17"}},
		"OlderDone":   {reason: "Also one that was before there were owners.", restored: true, files: map[string]string{"pgdata/PG_VERSION": "17"}},
		"Member":      {reason: "A member of a restored cluster goes on when another DatabaseCluster has adopted it.", restored: true, files: map[string]string{ownerFile: other, "pgdata/PG_VERSION": "17"}, reports: reports},
		"Outsider":    {reason: "One that is no member does not.", restored: true, files: map[string]string{ownerFile: other, "pgdata/PG_VERSION": "17"}, reports: map[string]string{instance.ClusterKey: text(t, instance.Cluster{Primary: setName + "-0"})}, failed: true},
		"NeverJoined": {reason: "Nor one that never followed.", restored: true, files: map[string]string{ownerFile: other, "pgdata/PG_VERSION": "17"}, reports: map[string]string{instance.ClusterKey: text(t, instance.Cluster{Primary: setName + "-0", Standbys: []instance.Standby{{Name: setName + "-1", New: true}}})}, failed: true},
		"Again":       {reason: "Nor does any while the cluster is to be restored.", restored: true, restoring: true, files: map[string]string{ownerFile: other, "pgdata/PG_VERSION": "17"}, reports: reports, failed: true},
		"Refused":     {reason: "An earlier manager named a server among the standbys that it had refused.", restored: true, files: map[string]string{ownerFile: other, "pgdata/PG_VERSION": "17"}, reports: refusedReports, failed: true},
		"OldFailure":  {reason: "How a restore went for another cluster is no news.", restored: true, restoring: true, files: map[string]string{ownerFile: other, instance.RestoreStateFile: `{"message":"old","failed":true}`}, gone: instance.RestoreStateFile},
		"OldRest":     {reason: "Nor is what one left that was interrupted.", files: map[string]string{ownerFile: other, "pgdata.restoring/PG_VERSION": "17"}, gone: "pgdata.restoring"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, config := installed(t)
			a.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName), Data: map[string]string{
				instance.DesiredKey: text(t, desired(func(d *instance.Desired) { d.Restored, d.Restoring = tc.restored, tc.restoring })),
			}})
			a.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-status"), Data: tc.reports})
			s, at := newServers(t)
			// No server runs beside a manager that decides whether one may start.
			at.Close()
			c := configOf(t, setName+"-1", at.URL)
			for file, content := range tc.files {
				path := filepath.Join(c.Volume, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if strings.HasSuffix(file, "/") {
					continue
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			m, err := New(c, config, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			m.server = s
			run(t, m)

			started := func() bool {
				w := httptest.NewRecorder()
				m.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/started", nil))
				return w.Code == http.StatusOK
			}
			refused := func() bool {
				said := a.report(instance.MemberKey(setName + "-1"))
				return strings.Contains(said, `"failed":true`) && strings.Contains(said, "delete that volume claim and pod "+setName+"-1")
			}
			if tc.failed {
				eventually(t, "the refusal is told: "+tc.reason, refused)
			} else {
				eventually(t, "PostgreSQL may start: "+tc.reason, started)
			}
			if started() == tc.failed || refused() != tc.failed {
				t.Errorf("%s\nstarted %v, refused %v", tc.reason, started(), refused())
			}
			owner, _ := os.ReadFile(filepath.Join(c.Volume, ownerFile))
			if want := map[bool]string{true: tc.files[ownerFile], false: me}[tc.failed]; string(owner) != want {
				t.Errorf("%s\nThe volume's owner is %q, want %q", tc.reason, owner, want)
			}
			if tc.gone != "" {
				if _, err := os.Stat(filepath.Join(c.Volume, tc.gone)); err == nil {
					t.Errorf("%s\n%s is still there", tc.reason, tc.gone)
				}
			}
		})
	}
}
