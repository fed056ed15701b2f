package settings

import (
	"os"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/waves"
)

func claimWith(t testing.TB, data any) *compose.Claim {
	t.Helper()
	return claimThatHad(t, data, "")
}

// claimThatHad returns a claim with settings of the installation, and with those with which it was
// composed in its status.
func claimThatHad(t testing.TB, data any, had string) *compose.Claim {
	t.Helper()
	req := &fnv1.RunFunctionRequest{}
	if had != "" {
		s, err := structpb.NewStruct(map[string]any{"status": map[string]any{"acceptedSettings": had}})
		if err != nil {
			t.Fatal(err)
		}
		req.Observed = &fnv1.State{Composite: &fnv1.Resource{Resource: s}}
	}
	if data != nil {
		s, err := structpb.NewStruct(map[string]any{"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig", "data": data})
		if err != nil {
			t.Fatal(err)
		}
		req.RequiredResources = map[string]*fnv1.Resources{compose.SettingsRequirement: {Items: []*fnv1.Resource{{Resource: s}}}}
	}
	return compose.NewClaim(req, nil)
}

func TestRead(t *testing.T) {
	defaults := Settings{ImageRegistry: "registry.example.com/storeplane"}
	const refused = "cannot use EnvironmentConfig storeplane: data."

	cases := map[string]struct {
		reason string
		data   any
		want   Settings
		err    string
	}{
		"None":  {reason: "Everything works without it.", want: defaults},
		"Empty": {reason: "An empty one changes nothing.", data: map[string]any{}, want: defaults},
		"All": {
			reason: "What it says is taken.",
			data: map[string]any{
				"imageRegistry": "10.0.0.1:5000/store_plane/v1", "storageClassName": "fast.ssd",
				"ingress":    map[string]any{"className": "nginx", "namespace": "ingress-nginx"},
				"backup":     map[string]any{"type": "s3", "bucket": "b", "secretRef": map[string]any{"name": "s", "namespace": "platform", "perNamespace": true}, "grants": []any{map[string]any{"of": "lost", "to": []any{"shop"}}}},
				"monitoring": map[string]any{"namespace": "observability"},
				"policy":     map[string]any{"approvedRegistries": []any{"registry.example.com", "docker.io/library", "10.0.0.1:5000", "localhost/team_a"}},
			},
			want: Settings{
				ImageRegistry: "10.0.0.1:5000/store_plane/v1", StorageClassName: "fast.ssd",
				Ingress:    Ingress{ClassName: "nginx", Namespace: "ingress-nginx"},
				Monitoring: Monitoring{Namespace: "observability"},
				Backup:     &Backup{Type: "s3", Bucket: "b", SecretRef: &SecretRef{Name: "s", Namespace: "platform", PerNamespace: true}, Grants: []Grant{{Of: "lost", To: []string{"shop"}}}},
				Policy:     Policy{ApprovedRegistries: []string{"registry.example.com", "docker.io/library", "10.0.0.1:5000", "localhost/team_a"}},
			},
		},
		"Interval":       {reason: "How often a claim at rest is looked at may be said.", data: map[string]any{"pollInterval": "1m"}, want: Settings{ImageRegistry: defaults.ImageRegistry, PollInterval: "1m"}},
		"IntervalShort":  {reason: "Without a rest nothing is quiet.", data: map[string]any{"pollInterval": "1s"}, err: refused + `pollInterval must be a duration from 10s to 24h, like 1m, is "1s"`},
		"IntervalLong":   {reason: "Nor may it be never.", data: map[string]any{"pollInterval": "25h"}, err: refused + `pollInterval must be a duration from 10s to 24h, like 1m, is "25h"`},
		"IntervalText":   {reason: "A duration has a unit.", data: map[string]any{"pollInterval": "60"}, err: refused + `pollInterval must be a duration from 10s to 24h, like 1m, is "60"`},
		"Urgent":         {reason: "Versions that wait for no window may be listed.", data: map[string]any{"upgrades": map[string]any{"urgent": []any{"v0.2.1", "v1.0.0-rc.1"}}}, want: Settings{ImageRegistry: defaults.ImageRegistry, Upgrades: Upgrades{Urgent: []string{"v0.2.1", "v1.0.0-rc.1"}}}},
		"UrgentNoV":      {reason: "One that nothing is compared with would be waited for.", data: map[string]any{"upgrades": map[string]any{"urgent": []any{"v0.2.1", "0.2.2"}}}, err: refused + `upgrades.urgent[1] must be a version like v0.2.1, is "0.2.2"`},
		"UrgentName":     {reason: "So would one that is no version.", data: map[string]any{"upgrades": map[string]any{"urgent": []any{"latest"}}}, err: refused + `upgrades.urgent[0] must be a version like v0.2.1, is "latest"`},
		"UrgentRange":    {reason: "A part of a version is none.", data: map[string]any{"upgrades": map[string]any{"urgent": []any{"v0.2"}}}, err: refused + `upgrades.urgent[0] must be a version like v0.2.1, is "v0.2"`},
		"Waves":          {reason: "Claims may be upgraded in waves.", data: map[string]any{"upgrades": map[string]any{"waves": []any{map[string]any{"name": "first", "percent": 10, "pause": "1h"}}}}, want: Settings{ImageRegistry: defaults.ImageRegistry, Upgrades: Upgrades{Waves: []waves.Wave{{Name: "first", Percent: new(10), Pause: "1h"}}}}},
		"WavesField":     {reason: "A misspelt part would be all.", data: map[string]any{"upgrades": map[string]any{"waves": []any{map[string]any{"name": "first", "percnt": 10}}}}, err: refused + "upgrades.waves[0].percnt is no field of a wave: it has name, namespaces, pause, percent"},
		"WavesNone":      {reason: "Nor is none of them a part.", data: map[string]any{"upgrades": map[string]any{"waves": []any{map[string]any{"name": "first", "percent": 0}}}}, err: refused + "upgrades.waves[0].percent must be from 1 to 100, is 0"},
		"PartOfIngress":  {reason: "A part of a part leaves the rest.", data: map[string]any{"ingress": map[string]any{"className": "nginx"}}, want: Settings{ImageRegistry: defaults.ImageRegistry, Ingress: Ingress{ClassName: "nginx"}}},
		"OthersKeys":     {reason: "Others may keep theirs there.", data: map[string]any{"region": "eu", "n": 7}, want: defaults},
		"EmptyRegistry":  {reason: "An empty registry says nothing, as an empty class does: there is no image without one.", data: map[string]any{"imageRegistry": ""}, want: defaults},
		"NullRegistry":   {reason: "Null says nothing.", data: map[string]any{"imageRegistry": nil}, want: defaults},
		"RegistryNumber": {reason: "A wrong type is named by its path.", data: map[string]any{"imageRegistry": 5000}, err: "cannot read EnvironmentConfig storeplane: data.imageRegistry: must be a string, is a number"},
		"IngressText":    {reason: "So is one of a part.", data: map[string]any{"ingress": "nginx"}, err: "cannot read EnvironmentConfig storeplane: data.ingress: must be an object, is a string"},
		"BackupType":     {reason: "There is no other kind of store.", data: map[string]any{"backup": map[string]any{"type": "ftp"}}, err: refused + `backup.type must be s3, gcs, azure or volume, is "ftp"`},
		"BackupBucket":   {reason: "An object store has buckets.", data: map[string]any{"backup": map[string]any{"type": "s3"}}, err: refused + "backup.bucket is needed for type s3"},
		"BackupVolume":   {reason: "No volume is in all namespaces.", data: map[string]any{"backup": map[string]any{"type": "volume", "bucket": "b"}}, err: refused + "backup.bucket must be left out for type volume: each claim gets a volume of its own"},
		"BackupPlain":    {reason: "pgBackRest speaks by TLS alone.", data: map[string]any{"backup": map[string]any{"type": "s3", "bucket": "b", "endpoint": "http://store"}}, err: refused + `backup.endpoint must be a URL like https://store.example.com, is "http://store"`},
		"BackupPrefix":   {reason: "A prefix does not leave the bucket.", data: map[string]any{"backup": map[string]any{"type": "s3", "bucket": "b", "prefix": "../x"}}, err: refused + `backup.prefix must be a relative path like team/backups, is "../x"`},
		"BackupOneForAll": {
			reason: "Who shares one Secret with all namespaces says so.", data: map[string]any{"backup": map[string]any{"type": "s3", "bucket": "b", "secretRef": map[string]any{"name": "s", "namespace": "platform"}}},
			err: refused + "backup.secretRef needs either perNamespace: true, for a Secret s-<namespace> for the claims of each namespace, or shared: true, for one that lets a user who may read Secrets in one of them read and delete the backups of all",
		},
		"BackupBoth": {
			reason: "It is one or the other.", data: map[string]any{"backup": map[string]any{"type": "s3", "bucket": "b", "secretRef": map[string]any{"name": "s", "namespace": "platform", "shared": true, "perNamespace": true}}},
			err: refused + "backup.secretRef needs either perNamespace: true, for a Secret s-<namespace> for the claims of each namespace, or shared: true, for one that lets a user who may read Secrets in one of them read and delete the backups of all",
		},
		"BackupSharedNowhere": {
			reason: "A namespace's own Secret is not shared.", data: map[string]any{"backup": map[string]any{"type": "s3", "bucket": "b", "secretRef": map[string]any{"name": "s", "shared": true}}},
			err: refused + "backup.secretRef.perNamespace and shared need secretRef.namespace: without it each namespace has a Secret of its own",
		},
		"BackupGrant":    {reason: "A grant to no namespace is none.", data: map[string]any{"backup": map[string]any{"type": "s3", "bucket": "b", "grants": []any{map[string]any{"of": "lost"}}}}, err: refused + "backup.grants need of, the namespace whose backups may be restored, and to, the namespaces that may"},
		"ClassList":      {reason: "And one deeper down.", data: map[string]any{"ingress": map[string]any{"className": []any{"a"}}}, err: "cannot read EnvironmentConfig storeplane: data.ingress.className: must be a string, is a list"},
		"BackupBoolean":  {reason: "Also where nothing is used of it yet.", data: map[string]any{"backup": true}, err: "cannot read EnvironmentConfig storeplane: data.backup: must be an object, is a boolean"},
		"RegistryURL":    {reason: "A URL is no image registry.", data: map[string]any{"imageRegistry": "https://registry.example.com/x y"}, err: refused + `imageRegistry must be a registry and path like registry.example.com/storeplane, is "https://registry.example.com/x y"`},
		"RegistryUpper":  {reason: "Images have no upper-case letters.", data: map[string]any{"imageRegistry": "registry.example.com/Store"}, err: refused + `imageRegistry must be a registry and path like registry.example.com/storeplane, is "registry.example.com/Store"`},
		"RegistrySlash":  {reason: "A slash at the end would give two.", data: map[string]any{"imageRegistry": "registry.example.com/"}, err: refused + `imageRegistry must be a registry and path like registry.example.com/storeplane, is "registry.example.com/"`},
		"RegistryLine":   {reason: "Nothing follows on a second line.", data: map[string]any{"imageRegistry": "registry.example.com\n"}, err: refused + `imageRegistry must be a registry and path like registry.example.com/storeplane, is "registry.example.com\n"`},
		"Class":          {reason: "A class is named.", data: map[string]any{"ingress": map[string]any{"className": "My Class"}}, err: refused + `ingress.className must be the name of an IngressClass, is "My Class"`},
		"Namespace":      {reason: "A namespace is named.", data: map[string]any{"ingress": map[string]any{"namespace": "-x"}}, err: refused + `ingress.namespace must be the name of a namespace, is "-x"`},
		"Monitoring":     {reason: "So is Prometheus'.", data: map[string]any{"monitoring": map[string]any{"namespace": "My Namespace"}}, err: refused + `monitoring.namespace must be the name of a namespace, is "My Namespace"`},
		"MonitoringText": {reason: "A wrong type of it is named by its path.", data: map[string]any{"monitoring": true}, err: "cannot read EnvironmentConfig storeplane: data.monitoring: must be an object, is a boolean"},
		"NoNamespace":    {reason: "Without one all namespaces are meant.", data: map[string]any{"monitoring": map[string]any{}}, want: defaults},
		"Approved":       {reason: "Approved registries are a list.", data: map[string]any{"policy": map[string]any{"approvedRegistries": "registry.example.com"}}, err: "cannot read EnvironmentConfig storeplane: data.policy.approvedRegistries: must be a list, is a string"},
		"ApprovedNoHost": {reason: "Without a host it is no registry of any image.", data: map[string]any{"policy": map[string]any{"approvedRegistries": []any{"registry.example.com", "team/apps"}}}, err: refused + `policy.approvedRegistries[1] must be the host of a registry with or without a path, like registry.example.com/team, is "team/apps"`},
		"ApprovedSlash":  {reason: "Segments are compared as wholes.", data: map[string]any{"policy": map[string]any{"approvedRegistries": []any{"registry.example.com/"}}}, err: refused + `policy.approvedRegistries[0] must be the host of a registry with or without a path, like registry.example.com/team, is "registry.example.com/"`},
		"ApprovedTag":    {reason: "Registries have no tags.", data: map[string]any{"policy": map[string]any{"approvedRegistries": []any{"registry.example.com/team:v1"}}}, err: refused + `policy.approvedRegistries[0] must be the host of a registry with or without a path, like registry.example.com/team, is "registry.example.com/team:v1"`},
		"Allowed": {
			reason: "What claims may ask for beside images is listed, too.",
			data: map[string]any{"policy": map[string]any{
				"allowedIngressHosts": []any{"shop.example.com", "*.example.com", "*.{namespace}.example.com", "{namespace}-shop.example.com"}, "allowedIngressAnnotations": []any{"a", "example.com/rate", "example.com/*"},
				"allowedTolerations": []any{"gpu"}, "allowedNodeSelectors": []any{"disk", "example.com/zone=a"}, "allowedPriorityClasses": []any{"high"},
				"allowedPodLabels": []any{"team"}, "allowedPodAnnotations": []any{"example.com/*"},
				"allowedIngressClasses": []any{"nginx", "infra/public", "{namespace}/own"},
			}},
			want: Settings{ImageRegistry: defaults.ImageRegistry, Policy: Policy{
				AllowedIngressHosts: []string{"shop.example.com", "*.example.com", "*.{namespace}.example.com", "{namespace}-shop.example.com"}, AllowedIngressAnnotations: []string{"a", "example.com/rate", "example.com/*"},
				AllowedTolerations: []string{"gpu"}, AllowedNodeSelectors: []string{"disk", "example.com/zone=a"}, AllowedPriorityClasses: []string{"high"},
				AllowedPodLabels: []string{"team"}, AllowedPodAnnotations: []string{"example.com/*"},
				AllowedIngressClasses: []string{"nginx", "infra/public", "{namespace}/own"},
			}},
		},
		"AllowedHost":       {reason: "A star is a whole part of a host.", data: map[string]any{"policy": map[string]any{"allowedIngressHosts": []any{"shop*.example.com"}}}, err: refused + `policy.allowedIngressHosts[0] must be a host like shop.example.com, *.example.com or {namespace}.example.com, is "shop*.example.com"`},
		"AllowedStar":       {reason: "Everything is allowed without a list.", data: map[string]any{"policy": map[string]any{"allowedIngressAnnotations": []any{"*"}}}, err: refused + `policy.allowedIngressAnnotations[0] must be the key of an annotation like example.com/rate, or example.com/*, is "*"`},
		"AllowedToleration": {reason: "A taint is named by its key.", data: map[string]any{"policy": map[string]any{"allowedTolerations": []any{"a", ""}}}, err: refused + `policy.allowedTolerations[1] must be the key of a taint like example.com/gpu, is ""`},
		"AllowedLabel":      {reason: "A label has a key.", data: map[string]any{"policy": map[string]any{"allowedNodeSelectors": []any{"=a"}}}, err: refused + `policy.allowedNodeSelectors[0] must be a label like example.com/disk or example.com/disk=fast, is "=a"`},
		"AllowedPodLabel":   {reason: "So is a label.", data: map[string]any{"policy": map[string]any{"allowedPodLabels": []any{"a b"}}}, err: refused + `policy.allowedPodLabels[0] must be the key of a label like example.com/team, or example.com/*, is "a b"`},
		"AllowedPriority":   {reason: "A class is named.", data: map[string]any{"policy": map[string]any{"allowedPriorityClasses": []any{"My Class"}}}, err: refused + `policy.allowedPriorityClasses[0] must be the name of a PriorityClass, is "My Class"`},
		"AllowedClass":      {reason: "A class or a Gateway is named.", data: map[string]any{"policy": map[string]any{"allowedIngressClasses": []any{"a/b/c"}}}, err: refused + `policy.allowedIngressClasses[0] must be the name of an IngressClass, or namespace/name of a Gateway, is "a/b/c"`},
		"StorageClass":      {reason: "A storage class is named.", data: map[string]any{"storageClassName": "fast;"}, err: refused + `storageClassName must be the name of a StorageClass, is "fast;"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Read(claimWith(t, tc.data), defaults)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tc.err {
				t.Errorf("%s\nRead(): want error %q, got %q", tc.reason, tc.err, text)
			}
			if err != nil && !compose.IsInvalid(err) {
				t.Errorf("%s\nRead(): a user can act on it", tc.reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nRead(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReadRemembered: a claim keeps the settings with which it was composed while those of the
// installation are invalid. They were checked at that time, so later checks do not apply to them.
func TestReadRemembered(t *testing.T) {
	const needs = "cannot use EnvironmentConfig storeplane: data.backup.secretRef needs either perNamespace: true, for a Secret s-<namespace> for the claims of each namespace, or shared: true, for one that lets a user who may read Secrets in one of them read and delete the backups of all"
	defaults := Settings{ImageRegistry: "registry.example.com/storeplane"}
	old := map[string]any{"backup": map[string]any{"type": "s3", "bucket": "b", "secretRef": map[string]any{"name": "s", "namespace": "platform"}}}
	backupOf := func(ref SecretRef) Settings {
		return Settings{ImageRegistry: defaults.ImageRegistry, Backup: &Backup{Type: "s3", Bucket: "b", SecretRef: &ref}}
	}
	cases := map[string]struct {
		reason string
		now    map[string]any
		had    string
		want   Settings
		err    string
	}{
		"OneForAll": {
			reason: "A Secret with a namespace was one for all before either had to be said.",
			now:    old, had: `{"backup":{"type":"s3","bucket":"b","secretRef":{"name":"s","namespace":"platform"}}}`,
			want: backupOf(SecretRef{Name: "s", Namespace: "platform", Shared: true}),
		},
		"PerNamespace": {
			reason: "What was said stays.",
			now:    old, had: `{"backup":{"type":"s3","bucket":"b","secretRef":{"name":"s","namespace":"platform","perNamespace":true}}}`,
			want: backupOf(SecretRef{Name: "s", Namespace: "platform", PerNamespace: true}),
		},
		"Own": {
			reason: "A namespace's own Secret is not shared.",
			now:    old, had: `{"backup":{"type":"s3","bucket":"b","secretRef":{"name":"s"}}}`,
			want: backupOf(SecretRef{Name: "s"}),
		},
		"Younger": {
			reason: "No check holds up what was taken before there was that check.",
			now:    old, had: `{"storageClassName":"Fast","policy":{"approvedRegistries":["team/apps"]}}`,
			want: Settings{ImageRegistry: defaults.ImageRegistry, StorageClassName: "Fast", Policy: Policy{ApprovedRegistries: []string{"team/apps"}}},
		},
		"Empty":      {reason: "Settings that meant the defaults still do.", now: old, had: `{}`, want: defaults},
		"Undecoded":  {reason: "What cannot be read cannot be used.", now: old, had: `{"imageRegistry":5000}`, err: needs},
		"NotText":    {reason: "Nor what is no JSON.", now: old, had: `{`, err: needs},
		"NeverAny":   {reason: "A claim that was composed without any is refused.", now: old, err: needs},
		"Repaired":   {reason: "Settings that can be used are used.", now: map[string]any{"storageClassName": "fast"}, had: `{"storageClassName":"Fast"}`, want: Settings{ImageRegistry: defaults.ImageRegistry, StorageClassName: "fast"}},
		"StillWrong": {reason: "Those of the installation are always checked.", now: map[string]any{"storageClassName": "Fast;"}, err: `cannot use EnvironmentConfig storeplane: data.storageClassName must be the name of a StorageClass, is "Fast;"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Read(claimThatHad(t, tc.now, tc.had), defaults)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tc.err {
				t.Errorf("%s\nRead(): want error %q, got %q", tc.reason, tc.err, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nRead(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReleaseOf: the provider computes the same release as the function.
func TestReleaseOf(t *testing.T) {
	own := images.Set{Registry: "registry.example.com/storeplane", Digests: images.Digests{"redis:8": "sha256:1"}, Version: "v0.2.0"}
	defaults := Settings{ImageRegistry: own.Registry, Digests: own.Digests, Version: own.Version}
	for name, data := range map[string]map[string]any{
		"None":     {},
		"Registry": {"imageRegistry": "10.0.0.1:5000/mirror"},
		"Backup":   {"backup": map[string]any{"type": "s3", "bucket": "b", "secretRef": map[string]any{"name": "s", "namespace": "platform", "shared": true}}},
		"Window":   {"maintenance": map[string]any{"production": map[string]any{"start": "02:00"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Read(claimWith(t, data), defaults)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ReleaseOf(&unstructured.Unstructured{Object: map[string]any{"data": data}}, own)
			if err != nil || got != s.Release() {
				t.Errorf("ReleaseOf(): want %s, got %s, %v", s.Release(), got, err)
			}
		})
	}
	if _, err := ReleaseOf(&unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"imageRegistry": ";"}}}, own); err == nil {
		t.Error("ReleaseOf(): settings that cannot be used have no release, and got one")
	}
}

// TestExample: package/install/settings.example.yaml can be read, and contains no unknown settings.
func TestExample(t *testing.T) {
	b, err := os.ReadFile("../../package/install/settings.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	example := struct {
		Data map[string]any `json:"data"`
	}{}
	if err := yaml.Unmarshal(b, &example); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(claimWith(t, example.Data), Settings{}); err != nil {
		t.Errorf("Read(): %v", err)
	}
	data, err := yaml.Marshal(example.Data)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, &Settings{}); err != nil {
		t.Errorf("The example has what no setting is: %v", err)
	}
}

// TestReadLeavesDefaults: reading the settings for one claim does not change the defaults for the
// next one.
func TestReadLeavesDefaults(t *testing.T) {
	defaults := Settings{ImageRegistry: "a", Backup: &Backup{Type: "volume"}}
	if _, err := Read(claimWith(t, map[string]any{"imageRegistry": "b", "backup": map[string]any{"type": "s3", "bucket": "x"}}), defaults); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Settings{ImageRegistry: "a", Backup: &Backup{Type: "volume"}}, defaults); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
