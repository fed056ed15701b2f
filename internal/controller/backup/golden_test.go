package backup

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// TestGolden: the golden files hold all that a Backup creates: its permanent objects, its CronJobs,
// and one Job of each action.
func TestGolden(t *testing.T) {
	cases := map[string]*State{
		"postgresql": state(),
		"mysql": state(params(func(p *backupv1.BackupParameters) {
			p.Source = backupv1.Database{Type: backupv1.MySQL, Databases: []string{"shop"}, Connection: backupv1.Connection{SecretRef: &backupv1.ConnectionSecret{Name: "maria", Key: "dsn"}}}
			p.Encryption = &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: "age", Key: "identity"}}
			p.Verification.Query, p.Verification.Storage = "select count(*) > 0 from orders", new(resource.MustParse("10Gi"))
		}), func(s *State) {
			s.Source.Secret, s.Source.Key, s.Source.Hosts = "maria", "dsn", []string{"maria.example.com"}
			s.Store.Destination.Endpoint = "https://minio.store.svc:9000"
			s.Store.Secret, s.Store.Copy = storeSecretName(s.Backup.Name), map[string][]byte{"AWS_ACCESS_KEY_ID": []byte("id"), "AWS_SECRET_ACCESS_KEY": []byte("key")}
		}),
		"mongodb": state(params(func(p *backupv1.BackupParameters) {
			p.Source.Type = backupv1.MongoDB
			p.Destination = backupv1.Destination{Type: backupv1.Volume, Bucket: "claim"}
			p.Suspend, p.TimeZone = true, "Europe/Vienna"
			p.Verification.Enabled = new(false)
		}), func(s *State) {
			s.Source.Hosts = []string{"mongo-0.data", "mongo-1.data:27018"}
			s.Store.Destination, s.Store.Secret = s.params().Destination, ""
		}),
		"generated": state(func(s *State) {
			s.Store.Secret, s.Store.Copy = storeSecretName(s.Backup.Name), map[string][]byte{"AWS_ACCESS_KEY_ID": []byte("id"), "AWS_SECRET_ACCESS_KEY": []byte("key")}
			s.Escrow = &escrow{key: []byte("key"), own: &ownKey{draws: true}}
		}),
		"physical": state(physical),
		// A throw-away MySQL of the cluster's version verifies its backups.
		"mysqlcluster": state(params(func(p *backupv1.BackupParameters) {
			p.Source = backupv1.Database{Type: backupv1.MySQL, Connection: backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: "ledger"}}}
		}), func(s *State) {
			s.Source.Secret, s.Source.Cluster, s.Source.Version = "ledger-connection", "ledger", "9.7"
		}),
		// One makes the copies, too.
		"mysqlcopy": state(copied, func(s *State) { s.Escrow = &escrow{key: []byte("key"), own: &ownKey{draws: true}} }),
	}
	for name, s := range cases {
		t.Run(name, func(t *testing.T) {
			got := render(t, everything(t, s))
			file := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("what a Backup makes has changed: read it, and run the test with -update.\n-want, +got:\n%s", diff)
			}
		})
	}
}

// everything returns all objects that a Backup may create.
func everything(t *testing.T, s *State) []client.Object {
	t.Helper()
	v := &view{State: s}
	v.readSpec()
	out := []client.Object{account(s.Backup), s.policy()}
	if p := s.sourcePolicy(); p != nil {
		out = append(out, p)
	}
	if secret := s.storeSecret(); secret != nil {
		out = append(out, secret)
	}
	crons, err := v.cronJobs()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range crons {
		if err := mark(c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	for _, j := range []struct {
		name   string
		action backup.Action
		value  string
	}{
		{checkName(s.Backup.Name, v.digest, 1), backup.Check, ""},
		{runName(s.Backup.Name, "1"), backup.Backup, "1"},
		{verifyNowName(s.Backup.Name, "1"), backup.Verify, "1"},
		{deleteName(s.Backup.Name, 1), backup.Delete, ""},
	} {
		job, err := v.job(j.name, j.action, j.value, 1)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, job)
	}
	return out
}

func render(t *testing.T, objects []client.Object) []byte {
	t.Helper()
	docs := make([][]byte, len(objects))
	for i, o := range objects {
		b, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		docs[i] = b
	}
	return bytes.Join(docs, []byte("---\n"))
}
