package pgbackrest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

func TestConfig(t *testing.T) {
	cases := map[string]struct {
		reason string
		repo   Repository
		want   []string
		not    []string
	}{
		"S3": {
			reason: "The cloud's own store is known by its region.",
			repo:   Repository{Destination: backupv1.Destination{Type: "s3", Bucket: "b", Prefix: "team/x", Region: "eu-west-1"}, Namespace: "shop", Name: "orders"},
			want:   []string{"repo1-type=s3", "repo1-s3-bucket=b", "repo1-s3-region=eu-west-1", "repo1-s3-endpoint=s3.eu-west-1.amazonaws.com", "repo1-path=/team/x/shop/orders"},
			not:    []string{"uri-style", "storage-port", "cipher", "tls-server"},
		},
		"S3Endpoint": {
			reason: "Another one is asked by paths, since it may have no names for its buckets.",
			repo:   Repository{Destination: backupv1.Destination{Type: "s3", Bucket: "b", Endpoint: "https://store.example.com:9443"}, Namespace: "shop", Name: "orders"},
			want:   []string{"repo1-s3-region=us-east-1", "repo1-s3-endpoint=store.example.com", "repo1-storage-port=9443", "repo1-s3-uri-style=path", "repo1-path=/shop/orders"},
		},
		"GCS": {
			reason: "A port is the one of TLS unless it is said.",
			repo:   Repository{Destination: backupv1.Destination{Type: "gcs", Bucket: "b", Endpoint: "https://gcs.example.com"}, Namespace: "shop", Name: "orders", Encrypted: true},
			want:   []string{"repo1-type=gcs", "repo1-gcs-bucket=b", "repo1-gcs-endpoint=gcs.example.com:443", "repo1-cipher-type=aes-256-cbc"},
		},
		"Azure": {
			reason: "A container is a bucket.",
			repo:   Repository{Destination: backupv1.Destination{Type: "azure", Bucket: "c"}, Namespace: "shop", Name: "orders"},
			want:   []string{"repo1-type=azure", "repo1-azure-container=c"},
			not:    []string{"endpoint", "uri-style"},
		},
		"Volume": {
			reason: "A volume is reached by its server.",
			repo:   Repository{Destination: backupv1.Destination{Type: "volume", Bucket: "claim"}, Namespace: "shop", Name: "orders", Host: "orders-repository.shop.svc"},
			want:   []string{"repo1-type=posix", "repo1-host=orders-repository.shop.svc", "repo1-host-type=tls", "repo1-path=/var/lib/storeplane/volume/shop/orders"},
		},
		"Mounted": {
			reason: "Who has it mounted needs none.",
			repo:   Repository{Destination: backupv1.Destination{Type: "volume", Bucket: "claim"}, Namespace: "shop", Name: "orders"},
			want:   []string{"repo1-type=posix", "repo1-path=/var/lib/storeplane/volume/shop/orders"},
			not:    []string{"repo1-host"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.repo.Config()
			volume, verr := tc.repo.VolumeConfig()
			if err != nil || verr != nil {
				t.Fatal(err, verr)
			}
			for _, w := range tc.want {
				if !strings.Contains(got, "\n"+w+"\n") {
					t.Errorf("%s\nwant %s in\n%s", tc.reason, w, got)
				}
			}
			for _, n := range tc.not {
				if strings.Contains(got, n) {
					t.Errorf("%s\nwant no %s in\n%s", tc.reason, n, got)
				}
			}
			if strings.Contains(volume, "repo1-host") || !strings.Contains(volume, "tls-server-auth=storeplane-backup=*") {
				t.Errorf("the volume's server serves, and connects to no other:\n%s", volume)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	cases := map[string]struct {
		reason    string
		d         backupv1.Destination
		encrypted bool
		files     map[string]string
		want      []string
		fails     bool
	}{
		"S3": {
			reason: "Keys of a Secret end in a newline now and then.", d: backupv1.Destination{Type: "s3"},
			files: map[string]string{"AWS_ACCESS_KEY_ID": "id\n", "AWS_SECRET_ACCESS_KEY": "secret", "ca.crt": "x"},
			want:  []string{"S3_KEY=id", "S3_KEY_SECRET=secret", "STORAGE_CA_FILE=DIR/ca.crt"},
		},
		"S3Token":      {reason: "A session has a token.", d: backupv1.Destination{Type: "s3"}, files: map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}, want: []string{"S3_KEY=id", "S3_KEY_SECRET=s", "S3_TOKEN=t"}},
		"S3Identity":   {reason: "Without keys the node's identity counts.", d: backupv1.Destination{Type: "s3"}, want: []string{"S3_KEY_TYPE=auto"}},
		"GCS":          {reason: "The key is a file.", d: backupv1.Destination{Type: "gcs"}, files: map[string]string{"credentials.json": "{}"}, want: []string{"GCS_KEY=DIR/credentials.json"}},
		"GCSOpen":      {reason: "A store of one's own may require no authentication.", d: backupv1.Destination{Type: "gcs", Endpoint: "https://gcs"}, want: []string{"GCS_KEY_TYPE=token", "GCS_KEY=none"}},
		"GCSIdentity":  {reason: "Google's own does.", d: backupv1.Destination{Type: "gcs"}, want: []string{"GCS_KEY_TYPE=auto"}},
		"Azure":        {reason: "An account has a key.", d: backupv1.Destination{Type: "azure"}, files: map[string]string{"AZURE_STORAGE_ACCOUNT": "a", "AZURE_STORAGE_KEY": "k"}, want: []string{"AZURE_ACCOUNT=a", "AZURE_KEY=k"}},
		"AzureSAS":     {reason: "Or a token.", d: backupv1.Destination{Type: "azure"}, files: map[string]string{"AZURE_STORAGE_ACCOUNT": "a", "AZURE_STORAGE_SAS_TOKEN": "t"}, want: []string{"AZURE_ACCOUNT=a", "AZURE_KEY=t", "AZURE_KEY_TYPE=sas"}},
		"Volume":       {reason: "A volume asks for nothing.", d: backupv1.Destination{Type: "volume"}},
		"Encrypted":    {reason: "The passphrase is in its file.", d: backupv1.Destination{Type: "volume"}, encrypted: true, files: map[string]string{"key": "pass\n"}, want: []string{"CIPHER_PASS=pass"}},
		"NoPassphrase": {reason: "Nothing is written in the clear for want of it.", d: backupv1.Destination{Type: "volume"}, encrypted: true, fails: true},
		"Empty":        {reason: "Nor with none.", d: backupv1.Destination{Type: "volume"}, encrypted: true, files: map[string]string{"key": "\n"}, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for n, v := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, n), []byte(v), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Environment(tc.d, tc.encrypted, Credentials{StoreDir: dir, KeyFile: filepath.Join(dir, "key")})
			if (err != nil) != tc.fails {
				t.Fatalf("%s\nEnvironment(): got error %v", tc.reason, err)
			}
			var want []string
			for _, w := range tc.want {
				want = append(want, "PGBACKREST_REPO1_"+strings.ReplaceAll(w, "DIR", dir))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nEnvironment(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// info is what pgBackRest 2.55 writes, shortened: a full backup, a verified incremental backup, and
// a full backup with an error.
const info = `[{"archive":[{"database":{"id":1,"repo-key":1},"id":"17-1","max":"00000002000000000000000A","min":"000000010000000000000001"}],"backup":[
{"database":{"id":1,"repo-key":1},"error":false,"info":{"delta":23200697,"repository":{"delta":2772513,"size":2772513},"size":23200697},"label":"20261121-152049F","timestamp":{"start":1795274449,"stop":1795274451},"type":"full"},
{"annotation":{"verified":"2026-01-02T03:04:05Z"},"database":{"id":1,"repo-key":1},"error":false,"info":{"delta":8450,"repository":{"delta":370,"size":2772515},"size":23200698},"label":"20261121-152049F_20261121-152051I","timestamp":{"start":1795274451,"stop":1795274453},"type":"incr"},
{"database":{"id":1,"repo-key":1},"error":true,"info":{"repository":{"delta":1}},"label":"20261121-152059F","timestamp":{"start":1795274459,"stop":1795274460},"type":"full"}
],"db":[{"id":1,"repo-key":1,"system-id":7710645014427504790,"version":"17"}],"name":"7710645014427504790","repo":[{"cipher":"none","key":1,"status":{"code":0,"message":"ok"}}],"status":{"code":0,"message":"ok"}}]`

func TestParseInfo(t *testing.T) {
	sets, err := parseInfo([]byte(info))
	if err != nil {
		t.Fatal(err)
	}
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	verified := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := []Set{
		{Stanza: "7710645014427504790", Label: "20261121-152049F", Version: "17", Start: at(1795274449), Stop: at(1795274451), Size: 2772513, Data: 23200697},
		{Stanza: "7710645014427504790", Label: "20261121-152049F_20261121-152051I", Version: "17", Start: at(1795274451), Stop: at(1795274453), Size: 370, Data: 23200698, Verified: verified},
	}
	if diff := cmp.Diff(want, sets); diff != "" {
		t.Fatalf("one with broken pages is no backup: -want, +got:\n%s", diff)
	}

	last := backup.Entry{ID: want[1].Label, Time: want[1].Start, Seconds: 2, Size: 370, Verified: &verified}
	catalog := &backup.Catalog{
		Count: 2, Total: 2772883, Oldest: new(at(1795274452)), Verified: &last, System: want[0].Stanza,
		Backups: []backup.Entry{last, {ID: want[0].Label, Time: want[0].Start, Seconds: 2, Size: 2772513}},
	}
	if diff := cmp.Diff(catalog, Catalog(sets, want[0].Stanza)); diff != "" {
		t.Errorf("Catalog(): -want, +got:\n%s", diff)
	}

	now := at(1795279999)
	choices := map[string]struct {
		reason string
		target time.Time
		want   string
	}{
		"Newest":  {reason: "No time is the latest.", want: want[1].Label},
		"After":   {reason: "The one before the time.", target: at(1795275000), want: want[1].Label},
		"At":      {reason: "A set is whole within the second in which it stops.", target: at(1795274452), want: want[0].Label},
		"Between": {reason: "One that was not whole yet is not it.", target: at(1795274453), want: want[0].Label},
		"Before":  {reason: "There is none before the first.", target: at(1795274451)},
		"Future":  {reason: "Nothing is known of the future.", target: now.Add(time.Second)},
	}
	for name, tc := range choices {
		t.Run(name, func(t *testing.T) {
			got, err := Choose(sets, "", tc.target, now)
			if got.Label != tc.want || (err != nil) != (tc.want == "") || err != nil && !errors.Is(err, ErrNone) {
				t.Errorf("%s\nChoose(): want %q, got %q, %v", tc.reason, tc.want, got.Label, err)
			}
		})
	}

	if _, err := parseInfo([]byte(`[{"name":"1","repo":[{"status":{"code":99,"message":"[HostConnectError] unable to connect\n to it"}}]}]`)); ReasonOf(err) != backup.StoreUnreachable {
		t.Errorf("a store that could not be read is no empty one: got %v", err)
	}
}

// TestChoose: the right backup is chosen from a repository that holds those of several databases.
func TestChoose(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(1795270000+s, 0).UTC() }
	set := func(stanza, label string, stop int64) Set {
		return Set{Stanza: stanza, Label: label, Start: at(stop - 1), Stop: at(stop)}
	}
	one := []Set{set("71", "a", 10), set("71", "b", 20)}
	two := append(slices.Clone(one), set("72", "c", 30))
	const both = "there are backups of several databases: 71 (2 backups, complete from 2026-11-21T14:06:51Z to 2026-11-21T14:07:01Z), 72 (1 backup, complete at 2026-11-21T14:07:11Z)"
	cases := map[string]struct {
		reason string
		sets   []Set
		stanza string
		target time.Time
		want   string
		fails  error
	}{
		"One":       {reason: "The only one needs no name.", sets: one, want: "b"},
		"OneNamed":  {reason: "It may have one.", sets: one, stanza: "71", want: "b"},
		"Two":       {reason: "The newest of two databases may be an empty one.", sets: two, want: both, fails: ErrSystems},
		"TwoTime":   {reason: "A time names neither.", sets: two, target: at(25), want: both, fails: ErrSystems},
		"Old":       {reason: "The old one is found by its name.", sets: two, stanza: "71", want: "b"},
		"OldTime":   {reason: "And by its name alone, whatever is newer.", sets: two, stanza: "71", target: at(40), want: "b"},
		"NewBefore": {reason: "The new one was not there before.", sets: two, stanza: "72", target: at(25), want: "there is no backup from before 2026-11-21T14:07:05Z: the oldest was complete at 2026-11-21T14:07:11Z", fails: ErrNone},
		"Unknown":   {reason: "Those that are there are listed.", sets: one, stanza: "73", want: "there is no backup of system identifier 73, only of 71 (2 backups, complete from 2026-11-21T14:06:51Z to 2026-11-21T14:07:01Z)", fails: ErrNone},
		"None":      {reason: "There is nothing.", stanza: "71", want: "there is no backup", fails: ErrNone},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Choose(tc.sets, tc.stanza, tc.target, at(100))
			said := got.Label
			if err != nil {
				said = err.Error()
			}
			if !errors.Is(err, tc.fails) {
				t.Errorf("%s\nChoose(): want error %v, got %v", tc.reason, tc.fails, err)
			}
			if diff := cmp.Diff(tc.want, said); diff != "" {
				t.Errorf("%s\nChoose(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseVerify(t *testing.T) {
	const good = "stanza: 1\nstatus: ok\n  archiveId: 17-1, total WAL checked: 2, total valid WAL: 2\n    missing: 0, checksum invalid: 0, size invalid: 0, other: 0\n  backup: 20261121-152049F, status: valid, total files checked: 966, total valid files: 966\n    missing: 0, checksum invalid: 0, size invalid: 0, other: 0\n"
	cases := map[string]struct{ reason, out, want string }{
		"Good":    {reason: "Nothing is wrong.", out: good},
		"Changed": {reason: "One byte is enough.", out: strings.Replace(strings.Replace(good, "ok", "error", 1), "status: valid, total files checked: 966, total valid files: 966\n    missing: 0, checksum invalid: 0", "status: invalid, total files checked: 966, total valid files: 965\n    missing: 0, checksum invalid: 1", 1), want: "the repository is damaged: backup 20261121-152049F is invalid, of backup 20261121-152049F 1 files are changed"},
		"WAL":     {reason: "So is the archive's.", out: strings.Replace(good, "missing: 0", "missing: 3", 1), want: "the repository is damaged: of WAL 3 files are missing"},
		"None":    {reason: "Nothing that can be used is not fine.", out: "stanza: 999\nstatus: error\n  No usable backup.info file\n  No usable archive.info file\n", want: "the repository is damaged: No usable backup.info file, No usable archive.info file"},
		"Silence": {reason: "Who says nothing has not looked.", out: "", want: "the repository is damaged: pgBackRest reports: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := parseVerify([]byte(tc.out)); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%s\nparseVerify(): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestReasonOf(t *testing.T) {
	say := func(code int, message string) error {
		return fmt.Errorf("cannot: %w", &Error{Command: "backup", Code: code, Message: message})
	}
	cases := map[string]struct {
		reason string
		err    error
		want   backup.Reason
	}{
		"Denied":   {reason: "The store's own word.", err: say(103, "[ProtocolError] HTTP request failed with 403 (Forbidden): <Code>InvalidAccessKeyId</Code>"), want: backup.StoreDenied},
		"Bucket":   {reason: "A bucket that is not there answers 404 too.", err: say(39, "HTTP request failed with 404 (Not Found): <Code>NoSuchBucket</Code>"), want: backup.BucketMissing},
		"Address":  {reason: "No name, no store.", err: say(103, "unable to find a valid repository: repo1: [HostConnectError] unable to get address for 'store.example.com'"), want: backup.StoreUnreachable},
		"Server":   {reason: "A server of the cluster is no store.", err: say(49, "unable to connect to 'orders-postgresql-0.orders-postgresql.shop.svc:8432'"), want: backup.SourceUnreachable},
		"Full":     {reason: "A volume ends.", err: say(62, "unable to write '/var/lib/storeplane/volume/x': [28] No space left on device"), want: backup.StoreFull},
		"Checksum": {reason: "What was read is not what was written.", err: say(26, "error restoring"), want: backup.BackupCorrupt},
		"Missing":  {reason: "There is nothing.", err: say(55, "unable to load info file"), want: backup.BackupMissing},
		"Else":     {reason: "The rest is the tool's.", err: say(58, "version mismatch"), want: backup.ToolFailed},
		"Stopped":  {reason: "It was told to.", err: context.Canceled, want: backup.Interrupted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ReasonOf(tc.err); got != tc.want {
				t.Errorf("%s\nReasonOf(%v): want %s, got %s", tc.reason, tc.err, tc.want, got)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	good := Repository{Destination: backupv1.Destination{Type: "s3", Bucket: "b", Prefix: "team/x", Region: "eu-west-1", Endpoint: "https://store.example.com:9000"}, Namespace: "shop", Name: "orders"}
	cases := map[string]struct {
		reason string
		change func(*Repository)
		want   string
	}{
		"Good":      {reason: "All of it is as it should be.", change: func(*Repository) {}},
		"Own":       {reason: "A cloud's own store has no endpoint.", change: func(r *Repository) { r.Destination.Endpoint, r.Destination.Region, r.Destination.Prefix = "", "", "" }},
		"Plain":     {reason: "pgBackRest speaks TLS alone.", change: func(r *Repository) { r.Destination.Endpoint = "http://store.example.com" }, want: "must begin with https://"},
		"NoURL":     {reason: "What is no URL names no host.", change: func(r *Repository) { r.Destination.Endpoint = "store" }, want: "is no URL like"},
		"Setting":   {reason: "A second line would be a setting of its own.", change: func(r *Repository) { r.Destination.Bucket = "b\nrepo1-path=/other" }, want: "bucket"},
		"Region":    {reason: "So it would be in a region.", change: func(r *Repository) { r.Destination.Region = "eu\nrepo1-s3-key-type=web-id" }, want: "region"},
		"Prefix":    {reason: "And in a prefix.", change: func(r *Repository) { r.Destination.Prefix = "a\n[global:restore]\nrecovery-option=x" }, want: "prefix"},
		"Host":      {reason: "And in a host.", change: func(r *Repository) { r.Destination.Endpoint = "https://a%0Arepo1-path=/x" }, want: "is no URL like"},
		"Above":     {reason: "A prefix leads to no other one's folder.", change: func(r *Repository) { r.Destination.Prefix = "../x" }, want: "cannot be named .."},
		"Name":      {reason: "Nor does a name.", change: func(r *Repository) { r.Name = "../../other/orders" }, want: "name"},
		"Namespace": {reason: "Nor does a namespace.", change: func(r *Repository) { r.Namespace = "../other" }, want: "namespace"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := good
			tc.change(&r)
			_, err := r.Config()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s\nConfig(): got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestConfigKeys: whatever the fields contain, the file has exactly the keys of a repository of
// that kind, each once, and the requested values.
func TestConfigKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := func(name string) string {
			return rapid.OneOf(rapid.StringMatching(`[a-z0-9./_-]{1,12}`), rapid.StringMatching(`[a-z\n\r=\[\]:#. \x00\x{2028}-]{0,12}`), rapid.String()).Draw(t, name)
		}
		r := Repository{Namespace: some("namespace"), Name: some("name"), Encrypted: rapid.Bool().Draw(t, "encrypted")}
		r.Destination = backupv1.Destination{
			Type:   rapid.SampledFrom([]backupv1.StoreType{backupv1.S3, backupv1.GCS, backupv1.Azure, backupv1.Volume}).Draw(t, "type"),
			Bucket: some("bucket"), Prefix: some("prefix"), Region: some("region"),
		}
		if rapid.Bool().Draw(t, "endpoint") {
			r.Destination.Endpoint = "https://" + some("endpoint")
		}
		got, err := r.Config()
		if err != nil {
			return
		}
		like := r
		like.Namespace, like.Name = "shop", "orders"
		like.Destination.Bucket, like.Destination.Prefix, like.Destination.Region = "b", "p", "r"
		if like.Destination.Endpoint != "" {
			like.Destination.Endpoint = "https://store.example.com"
		}
		want, err := like.Config()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(keysOf(want), keysOf(got)); diff != "" {
			t.Errorf("Config() of %+v: keys: -want, +got:\n%s", r, diff)
		}
		if under := path.Join("/", r.Destination.Prefix, r.Namespace, r.Name); !strings.HasSuffix(r.Path(), under) || strings.Contains(r.Path(), "..") {
			t.Errorf("Path() of %+v: got %s, want it to end in %s", r, r.Path(), under)
		}
	})
}

// keysOf returns the keys of a configuration as pgBackRest reads it: one per line.
func keysOf(config string) []string {
	var keys []string
	for line := range strings.SplitSeq(strings.ReplaceAll(config, "\r", "\n"), "\n") {
		key, _, _ := strings.Cut(line, "=")
		keys = append(keys, key)
	}
	return keys
}
