package manager

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
)

// TestForgetRestore: the files of an interrupted restore are removed once the cluster has its data,
// and not while the restore may still run.
func TestForgetRestore(t *testing.T) {
	cases := map[string]struct {
		reason  string
		cluster string
		want    bool
	}{
		"Restores": {reason: "There has been no primary yet: the restore may be at work.", cluster: `{}`, want: true},
		"Ran":      {reason: "Another server was restored, or this one by a second restore.", cluster: `{"primary":"` + setName + `-0"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, config := installed(t)
			a.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-status"), Data: map[string]string{instance.ClusterKey: tc.cluster}})
			_, at := newServers(t)
			m, err := New(configOf(t, setName+"-1", at.URL), config, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			left := []string{"pgdata.restoring/PG_VERSION", instance.RestoreStateFile}
			for _, file := range append(left, "pgdata/PG_VERSION") {
				path := filepath.Join(m.Volume, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(`{"message":"Restoring backup 1"}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			go m.Status.Run(t.Context())
			eventually(t, "the status is read", func() bool { return m.Status.One() != nil })
			(&member{Manager: m}).forgetRestore()
			if found, _ := filepath.Glob(filepath.Join(m.Volume, "pgdata.restoring.*")); len(found) > 0 {
				t.Errorf("%s\nit left %q", tc.reason, found)
			}
			is := func(file string) bool {
				_, err := os.Stat(filepath.Join(m.Volume, file))
				return err == nil
			}
			for _, file := range left {
				if is(file) != tc.want {
					t.Errorf("%s\n%s is there: %v, want %v", tc.reason, file, is(file), tc.want)
				}
			}
			if !is("pgdata/PG_VERSION") {
				t.Errorf("%s\nthe data is gone", tc.reason)
			}
		})
	}
}
