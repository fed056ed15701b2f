package resolve

import (
	"context"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

func resolver(t *testing.T, objects ...client.Object) *Resolver {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, backupv1.SchemeBuilder.AddToScheme, storeplanev1.SchemeBuilder.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	scheme.AddKnownTypeWithName(clusterKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(clusterKind.GroupVersion().WithKind("DatabaseClusterList"), &unstructured.UnstructuredList{})
	env := map[string]string{"AZURE_STORAGE_ACCOUNT": "a", "AZURE_STORAGE_KEY": "k", "HOME": "/"}
	return &Resolver{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Getenv: func(k string) string { return env[k] }}
}

func secretOf(namespace, name string, keys ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{}}
	for _, k := range keys {
		s.Data[k] = []byte("value of " + k)
	}
	return s
}

// boundCopy returns a copy of the platform's credentials with bounds.
func boundCopy(bounds string) *corev1.Secret { return copyOf("mine", bounds) }

func copyOf(name, bounds string) *corev1.Secret {
	s := secretOf("shop", name, "AWS_ACCESS_KEY_ID")
	s.Annotations = map[string]string{backup.BoundsAnnotation: bounds}
	return s
}

func cluster(ready, message string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.example.com/v1", "kind": "DatabaseCluster", "metadata": map[string]any{"namespace": "shop", "name": "orders"},
		"spec":   map[string]any{"version": "17.2", "storageSize": "20Gi"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready, "message": message}}},
	}}
}

func mysqlCluster() *unstructured.Unstructured {
	c := cluster("True", "")
	c.Object["spec"] = map[string]any{"engine": "mysql", "version": "9.7"}
	return c
}

func words(err error) string {
	if err == nil {
		return ""
	}
	if p := AsProblem(err); p != nil {
		return p.Reason + ": " + p.Message
	}
	return err.Error()
}

func TestSource(t *testing.T) {
	bySecret := func(key string) backupv1.Database {
		return backupv1.Database{Type: backupv1.PostgreSQL, Version: "15", Connection: backupv1.Connection{SecretRef: &backupv1.ConnectionSecret{Name: "db", Key: key}}}
	}
	byCluster := func(version string) backupv1.Database {
		return backupv1.Database{Type: backupv1.PostgreSQL, Version: version, Connection: backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: "orders"}}}
	}
	mySQL := byCluster("")
	mySQL.Type = backupv1.MySQL
	type want struct{ Secret, Key, Version, Waiting, Err string }
	cases := map[string]struct {
		reason  string
		objects []client.Object
		db      backupv1.Database
		want    want
	}{
		"URI":        {reason: "A URI under the name that the program looks for.", objects: []client.Object{secretOf("shop", "db", "uri")}, db: bySecret("uri"), want: want{Secret: "db", Key: "uri", Version: "15"}},
		"OtherKey":   {reason: "Or another one.", objects: []client.Object{secretOf("shop", "db", "dsn")}, db: bySecret("dsn"), want: want{Secret: "db", Key: "dsn", Version: "15"}},
		"Parts":      {reason: "Or its parts.", objects: []client.Object{secretOf("shop", "db", "host", "username", "password")}, db: bySecret("uri"), want: want{Secret: "db", Version: "15"}},
		"NoPart":     {reason: "Which must be there.", objects: []client.Object{secretOf("shop", "db", "host", "username")}, db: bySecret("uri"), want: want{Err: "SecretKeyNotFound: connection.secretRef names Secret db, which has neither key uri nor key password"}},
		"NoSecret":   {reason: "A Secret that is not there, or elsewhere.", objects: []client.Object{secretOf("other", "db", "uri")}, db: bySecret("uri"), want: want{Err: "SecretNotFound: connection.secretRef names Secret db, which does not exist in namespace shop"}},
		"Cluster":    {reason: "A cluster has a Secret, and says its version.", objects: []client.Object{cluster("True", ""), secretOf("shop", "orders-connection", "uri")}, db: byCluster(""), want: want{Secret: "orders-connection", Version: "17.2"}},
		"Overridden": {reason: "The Backup may say another one.", objects: []client.Object{cluster("True", ""), secretOf("shop", "orders-connection", "uri")}, db: byCluster("18"), want: want{Secret: "orders-connection", Version: "18"}},
		"NotReady":   {reason: "What it waits for is told.", objects: []client.Object{cluster("False", "Waiting for postgresql"), secretOf("shop", "orders-connection", "uri")}, db: byCluster(""), want: want{Secret: "orders-connection", Version: "17.2", Waiting: "DatabaseCluster orders is not ready: Waiting for postgresql"}},
		"NoCluster":  {reason: "A cluster that is not there.", db: byCluster(""), want: want{Err: "DatabaseClusterNotFound: connection.databaseClusterRef names DatabaseCluster orders, which does not exist in namespace shop"}},
		"OtherType":  {reason: "A cluster of another engine.", objects: []client.Object{cluster("True", "")}, db: mySQL, want: want{Err: "InvalidTask: connection.databaseClusterRef names DatabaseCluster orders, whose engine is postgresql, and type is mysql: create this object again with type postgresql"}},
		"TooEarly":   {reason: "One that has only just been made.", objects: []client.Object{cluster("False", "")}, db: byCluster(""), want: want{Err: "DatabaseClusterNotReady: DatabaseCluster orders has no Secret orders-connection yet"}},
		"NoDumper":   {reason: "No other user reads all.", objects: []client.Object{mysqlCluster(), secretOf("shop", "orders-connection", "uri")}, db: mySQL, want: want{Err: "DatabaseClusterNotReady: DatabaseCluster orders has no Secret orders-dumper yet"}},
		"MySQL":      {reason: "A cluster with a user that reads all databases.", objects: []client.Object{mysqlCluster(), secretOf("shop", "orders-dumper", "uri"), secretOf("shop", "orders-connection", "uri")}, db: mySQL, want: want{Secret: "orders-dumper", Version: "9.7"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := resolver(t, tc.objects...).Source(t.Context(), "shop", tc.db)
			got := want{Secret: s.Secret, Key: s.Key, Version: s.Version, Waiting: s.Waiting, Err: words(err)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTarget: what is written to a DatabaseCluster is written as its first user.
func TestTarget(t *testing.T) {
	r := resolver(t, mysqlCluster(), secretOf("shop", "orders-dumper", "uri"), secretOf("shop", "orders-connection", "uri"))
	s, err := r.Target(t.Context(), "shop", backupv1.Database{Type: backupv1.MySQL, Connection: backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: "orders"}}})
	if err != nil || s.Secret != "orders-connection" || s.Cluster != "orders" {
		t.Errorf("Target(...): got Secret %q of %q, %v", s.Secret, s.Cluster, err)
	}
}

// TestVolumes: the size of a cluster's volumes is the claim's, or that of the first volume where the claim sets none.
func TestVolumes(t *testing.T) {
	volume := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-orders-mysql-0"}}
	volume.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("50Gi")}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    string
		err     string
	}{
		"Claim":   {reason: "The claim's comes first.", objects: []client.Object{cluster("True", ""), volume}, want: "20Gi"},
		"Volume":  {reason: "Its environment's default may have been another one when the volume was created.", objects: []client.Object{mysqlCluster(), volume}, want: "50Gi"},
		"TooSoon": {reason: "A cluster that was only just created has no volume.", objects: []client.Object{mysqlCluster()}, want: "0"},
		"Missing": {reason: "There is no cluster.", want: "0", err: "DatabaseClusterNotFound: connection.databaseClusterRef names DatabaseCluster orders, which does not exist in namespace shop"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := resolver(t, tc.objects...).Volumes(t.Context(), "shop", "orders")
			if got := c.Storage.String(); got != tc.want || words(err) != tc.err {
				t.Errorf("%s\nVolumes(...): got %s, %q, want %s, %q", tc.reason, got, words(err), tc.want, tc.err)
			}
		})
	}
}

func TestStore(t *testing.T) {
	ref := func(kind, name string) *xpv2.ProviderConfigReference {
		return &xpv2.ProviderConfigReference{Kind: kind, Name: name}
	}
	global := func(c storeplanev1.Credentials) client.Object {
		return &storeplanev1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: storeplanev1.ProviderConfigSpec{Endpoint: "https://all", Region: "eu", Bucket: "b", Prefix: "p", Credentials: c}}
	}
	local := func(c storeplanev1.Credentials) client.Object {
		return &storeplanev1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}, Spec: storeplanev1.ProviderConfigSpec{Endpoint: "https://own", Credentials: c}}
	}
	named := func(namespace string) storeplanev1.Credentials {
		return storeplanev1.Credentials{Source: storeplanev1.CredentialsSecret, SecretRef: &xpv2.SecretReference{Namespace: namespace, Name: "keys"}}
	}
	each := func(c storeplanev1.Credentials) storeplanev1.Credentials {
		c.PerNamespace = true
		return c
	}
	s3 := backupv1.Destination{Type: backupv1.S3, Bucket: "b"}
	own := backupv1.Destination{Type: backupv1.S3, Bucket: "b", Endpoint: "https://mine", SecretRef: &backupv1.LocalReference{Name: "mine"}}
	copied := map[string][]byte{"AWS_ACCESS_KEY_ID": []byte("value of AWS_ACCESS_KEY_ID"), "ca.crt": []byte("value of ca.crt")}

	type want struct {
		Endpoint, Region, Secret, Account string
		Copy                              map[string][]byte
		Configured                        bool
		Of                                string // whose credentials they are, for copies
		Err                               string
	}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		ref     *xpv2.ProviderConfigReference
		d       backupv1.Destination
		want    want
	}{
		"Nothing":             {reason: "The default configuration need not exist.", ref: ref("ClusterProviderConfig", "default"), d: s3},
		"NoReference":         {reason: "Nor be named.", d: s3},
		"OwnSecret":           {reason: "A Backup's own Secret and endpoint come first.", objects: []client.Object{global(named("system")), secretOf("shop", "mine", "x")}, d: own, want: want{Endpoint: "https://mine", Region: "eu", Secret: "mine", Configured: true}},
		"NamedCopy":           {reason: "A copy of the platform's credentials is bound as they are.", objects: []client.Object{boundCopy("{}")}, d: own, want: want{Err: "DestinationInvalid: destination.bucket is b, and the credentials of  are for no bucket of another's choice: leave it out, or name credentials of this namespace in destination.secretRef"}},
		"NamedCopyOf":         {reason: "To another endpoint they do not go.", objects: []client.Object{boundCopy(`{"of":"EnvironmentConfig storeplane","bucket":"b","endpoint":"https://all","reads":["shop"]}`)}, d: own, want: want{Err: "DestinationInvalid: destination.endpoint is https://mine, and the credentials of EnvironmentConfig storeplane are for https://all alone: leave it out, or name credentials of this namespace in destination.secretRef"}},
		"NamedBroken":         {reason: "Bounds that cannot be read are none that are kept.", objects: []client.Object{boundCopy("{")}, d: own, want: want{Err: "CredentialsMissing: cannot use Secret mine, which destination.secretRef names: cannot read annotation storeplane.example.com/credentials-for: unexpected end of JSON input"}},
		"OwnMissing":          {reason: "If it is there.", d: own, want: want{Err: "SecretNotFound: destination.secretRef names Secret mine, which does not exist in namespace shop"}},
		"Copied":              {reason: "Of a configuration's Secret only what is known is copied.", objects: []client.Object{global(named("system")), secretOf("system", "keys", "AWS_ACCESS_KEY_ID", "ca.crt", "note")}, d: s3, want: want{Endpoint: "https://all", Region: "eu", Secret: "copy", Copy: copied, Configured: true}},
		"PerNamespace":        {reason: "Each namespace may have a Secret of its own there.", objects: []client.Object{global(each(named("system"))), secretOf("system", "keys-shop", "AWS_ACCESS_KEY_ID", "ca.crt"), secretOf("system", "keys", "note")}, d: s3, want: want{Endpoint: "https://all", Region: "eu", Secret: "copy", Copy: copied, Configured: true, Of: "ClusterProviderConfig default"}},
		"PerNamespaceMissing": {reason: "And never takes another's.", objects: []client.Object{global(each(named("system"))), secretOf("system", "keys", "AWS_ACCESS_KEY_ID")}, d: s3, want: want{Configured: true, Of: "ClusterProviderConfig default", Err: "SecretNotFound: credentials.secretRef names Secret keys-shop, which does not exist in namespace system"}},
		"Named":               {reason: "Who names what the credentials are for gets the same.", objects: []client.Object{global(named("system")), secretOf("system", "keys", "AWS_ACCESS_KEY_ID", "ca.crt")}, d: backupv1.Destination{Type: backupv1.S3, Bucket: "b", Prefix: "p/", Endpoint: "https://all/", Region: "eu"}, want: want{Endpoint: "https://all", Region: "eu", Secret: "copy", Copy: copied, Configured: true}},
		"OtherEndpoint":       {reason: "Another endpoint would learn the platform's credentials.", objects: []client.Object{global(named("system"))}, d: backupv1.Destination{Type: backupv1.S3, Bucket: "b", Endpoint: "https://mine"}, want: want{Err: "DestinationInvalid: destination.endpoint is https://mine, and the credentials of ClusterProviderConfig default are for https://all alone: leave it out, or name credentials of this namespace in destination.secretRef"}},
		"OtherBucket":         {reason: "Another bucket is another team's.", objects: []client.Object{global(named("system"))}, d: backupv1.Destination{Type: backupv1.S3, Bucket: "c"}, want: want{Err: "DestinationInvalid: destination.bucket is c, and the credentials of ClusterProviderConfig default are for b alone: name that one, or name credentials of this namespace in destination.secretRef"}},
		"OtherPrefix":         {reason: "So is another prefix.", objects: []client.Object{global(named("system"))}, d: backupv1.Destination{Type: backupv1.S3, Bucket: "b", Prefix: "p/other"}, want: want{Err: "DestinationInvalid: destination.prefix is p/other, and the credentials of ClusterProviderConfig default are for p alone: leave it out, or name credentials of this namespace in destination.secretRef"}},
		"OtherRegion":         {reason: "The region is part of the endpoint.", objects: []client.Object{global(storeplanev1.Credentials{Source: storeplanev1.CredentialsEnvironment})}, d: backupv1.Destination{Type: backupv1.S3, Bucket: "b", Region: "us"}, want: want{Err: "DestinationInvalid: destination.region is us, and the credentials of ClusterProviderConfig default are for eu alone: leave it out, or name credentials of this namespace in destination.secretRef"}},
		"NoEndpoint": {reason: "Where the platform names none it is the cloud provider's.", objects: []client.Object{&storeplanev1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: storeplanev1.ProviderConfigSpec{Bucket: "b", Credentials: named("system")}}}, d: backupv1.Destination{Type: backupv1.S3, Bucket: "b", Endpoint: "https://mine"},
			want: want{Err: "DestinationInvalid: destination.endpoint is https://mine, and the credentials of ClusterProviderConfig default are for no endpoint of another's choice: leave it out, or name credentials of this namespace in destination.secretRef"}},
		"NoBucket": {reason: "Credentials for every bucket are for no Backup.", objects: []client.Object{&storeplanev1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: storeplanev1.ProviderConfigSpec{Credentials: named("system")}}}, d: s3,
			want: want{Err: "ProviderConfigInvalid: ClusterProviderConfig default does not name the bucket that its credentials are for: set its bucket, or name credentials of this namespace in destination.secretRef"}},
		"LocalEnvironment": {reason: "The provider's own credentials are the platform's.", objects: []client.Object{local(storeplanev1.Credentials{Source: storeplanev1.CredentialsEnvironment})}, ref: ref("ProviderConfig", "own"), d: s3,
			want: want{Err: "ProviderConfigInvalid: ProviderConfig own asks for the provider's own credentials, which are the platform's: only a ClusterProviderConfig may"}},
		"Empty": {reason: "And there must be something.", objects: []client.Object{global(named("system")), secretOf("system", "keys", "note")}, d: s3, want: want{Configured: true, Err: "CredentialsMissing: credentials.secretRef names Secret keys, which has none of the keys that a store's credentials have"}},
		"Local": {reason: "A namespace's own configuration.", objects: []client.Object{local(named("shop")), secretOf("shop", "keys", "AWS_ACCESS_KEY_ID", "ca.crt")}, ref: ref("ProviderConfig", "own"), d: s3, want: want{Endpoint: "https://own", Secret: "copy", Copy: copied, Configured: true}},
		"LocalCopy": {reason: "Nor bring a copy of the platform's credentials elsewhere.", objects: []client.Object{local(named("shop")), copyOf("keys", `{"of":"EnvironmentConfig storeplane","bucket":"platform","reads":["shop"]}`)}, ref: ref("ProviderConfig", "own"), d: s3,
			want: want{Err: "DestinationInvalid: destination.bucket is b, and the credentials of EnvironmentConfig storeplane are for platform alone: name that one, or name credentials of this namespace in destination.secretRef"}},
		"LocalCopyOf": {reason: "Where they are for they may go, and stay bound.", objects: []client.Object{local(named("shop")), copyOf("keys", `{"of":"EnvironmentConfig storeplane","bucket":"b","endpoint":"https://all","reads":["shop"]}`)}, ref: ref("ProviderConfig", "own"), d: s3,
			want: want{Endpoint: "https://all", Secret: "copy", Copy: map[string][]byte{"AWS_ACCESS_KEY_ID": []byte("value of AWS_ACCESS_KEY_ID")}, Configured: true, Of: "EnvironmentConfig storeplane"}},
		"LocalBroken": {reason: "Bounds that cannot be read are none that are kept.", objects: []client.Object{local(named("shop")), copyOf("keys", "{")}, ref: ref("ProviderConfig", "own"), d: s3,
			want: want{Err: "CredentialsMissing: cannot use Secret keys, which credentials.secretRef names: cannot read annotation storeplane.example.com/credentials-for: unexpected end of JSON input"}},
		"LocalForeign":   {reason: "Which may not reach out of it.", objects: []client.Object{local(named("system"))}, ref: ref("ProviderConfig", "own"), d: s3, want: want{Err: "ProviderConfigInvalid: ProviderConfig own names a Secret of namespace system: it may only name one of its own"}},
		"Environment":    {reason: "The provider's own credentials.", objects: []client.Object{global(storeplanev1.Credentials{Source: storeplanev1.CredentialsEnvironment})}, d: s3, want: want{Endpoint: "https://all", Region: "eu", Secret: "copy", Configured: true, Copy: map[string][]byte{"AZURE_STORAGE_ACCOUNT": []byte("a"), "AZURE_STORAGE_KEY": []byte("k")}}},
		"Identity":       {reason: "An identity that the cloud knows.", objects: []client.Object{global(storeplanev1.Credentials{Source: storeplanev1.CredentialsInjectedIdentity, ServiceAccountName: "cloud"}), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cloud"}}}, d: s3, want: want{Endpoint: "https://all", Region: "eu", Account: "cloud", Configured: true}},
		"NoIdentity":     {reason: "If the namespace has it.", objects: []client.Object{global(storeplanev1.Credentials{Source: storeplanev1.CredentialsInjectedIdentity, ServiceAccountName: "cloud"})}, d: s3, want: want{Account: "cloud", Configured: true, Err: "ServiceAccountNotFound: credentials.serviceAccountName names ServiceAccount cloud, which does not exist in namespace shop"}},
		"NoConfig":       {reason: "Another configuration than the default must exist.", ref: ref("ClusterProviderConfig", "x"), d: s3, want: want{Err: "ProviderConfigNotFound: providerConfigRef names ClusterProviderConfig x, which does not exist"}},
		"NoLocal":        {reason: "Also one that is called default.", ref: ref("ProviderConfig", "default"), d: s3, want: want{Err: "ProviderConfigNotFound: providerConfigRef names ProviderConfig default, which does not exist"}},
		"WrongKind":      {reason: "Kinds that there are none of.", ref: ref("X", "x"), d: s3, want: want{Err: `ProviderConfigInvalid: providerConfigRef.kind must be ProviderConfig or ClusterProviderConfig, is "X"`}},
		"Volume":         {reason: "A volume needs no configuration.", objects: []client.Object{&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c"}}}, ref: ref("X", "x"), d: backupv1.Destination{Type: backupv1.Volume, Bucket: "c"}},
		"Plain":          {reason: "Without TLS credentials can be read on the way.", d: backupv1.Destination{Type: backupv1.S3, Bucket: "b", Endpoint: "http://s3"}, want: want{Err: `DestinationInvalid: cannot use the destination: endpoint "http://s3" has no TLS, so that credentials and data go in plain text: use https, or set insecure`}},
		"Insecure":       {reason: "Which may be meant.", d: backupv1.Destination{Type: backupv1.S3, Bucket: "b", Endpoint: "http://s3", Insecure: true}, want: want{Endpoint: "http://s3"}},
		"TwoLines":       {reason: "What is more than a name is none.", d: backupv1.Destination{Type: backupv1.S3, Bucket: "b\nrepo1-path=/x"}, want: want{Err: `DestinationInvalid: cannot use the destination: bucket "b\nrepo1-path=/x" is not allowed: it must be letters, digits, dots, hyphens and underscores`}},
		"VolumeNotFound": {reason: "It must exist.", d: backupv1.Destination{Type: backupv1.Volume, Bucket: "c"}, want: want{Err: "VolumeNotFound: destination.bucket names PersistentVolumeClaim c, which does not exist in namespace shop"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := resolver(t, tc.objects...).Store(t.Context(), "shop", tc.ref, tc.d, "copy")
			got := want{Endpoint: s.Destination.Endpoint, Region: s.Destination.Region, Secret: s.Secret, Account: s.ServiceAccount, Copy: s.Copy, Configured: s.Configured, Err: words(err)}
			if err != nil && AsProblem(err) != nil {
				got.Copy = tc.want.Copy
			}
			if tc.want.Of != "" && s.Bounds != nil {
				got.Of = s.Bounds.Of
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if s.Destination.SecretRef != nil {
				t.Error("The Secret is mounted, and no part of a task.")
			}
		})
	}
}

// TestGenerates: keys are generated only for stores with the platform's credentials.
func TestGenerates(t *testing.T) {
	config := func(source storeplanev1.CredentialsSource, e storeplanev1.BackupEncryption) client.Object {
		c := &storeplanev1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: storeplanev1.ProviderConfigSpec{Bucket: "b", Encryption: e, Credentials: storeplanev1.Credentials{Source: source}}}
		if source == storeplanev1.CredentialsSecret {
			c.Spec.Credentials.SecretRef = &xpv2.SecretReference{Namespace: "system", Name: "keys"}
		}
		return c
	}
	local := &storeplanev1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}, Spec: storeplanev1.ProviderConfigSpec{Credentials: storeplanev1.Credentials{
		Source: storeplanev1.CredentialsSecret, SecretRef: &xpv2.SecretReference{Namespace: "shop", Name: "mine"},
	}}}
	// It is a copy of the platform's credentials, but any user may write such an annotation on a
	// Secret.
	bound := boundCopy(`{"of":"ClusterProviderConfig default","bucket":"b","reads":["shop","bank"]}`)
	type want struct{ Platforms, Generates bool }
	cases := map[string]struct {
		reason string
		config client.Object
		ref    *xpv2.ProviderConfigReference
		secret string
		want   want
	}{
		"Secret":      {reason: "All namespaces share the store.", config: config(storeplanev1.CredentialsSecret, ""), want: want{true, true}},
		"Environment": {reason: "So they do with the provider's own.", config: config(storeplanev1.CredentialsEnvironment, storeplanev1.EncryptionGenerated), want: want{true, true}},
		"Off":         {reason: "It can be turned off.", config: config(storeplanev1.CredentialsSecret, storeplanev1.EncryptionNone), want: want{true, false}},
		"None":        {reason: "Without credentials there is nothing to share.", config: config(storeplanev1.CredentialsNone, "")},
		"Own":         {reason: "A namespace's own store is its own business.", config: config(storeplanev1.CredentialsSecret, ""), secret: "own"},
		"Copy":        {reason: "What is written on a Secret is not the platform's word.", config: config(storeplanev1.CredentialsSecret, ""), secret: "mine"},
		"Local":       {reason: "Nor is a configuration of the namespace.", config: local, ref: &xpv2.ProviderConfigReference{Kind: "ProviderConfig", Name: "own"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := backupv1.Destination{Type: backupv1.S3, Bucket: "b"}
			if tc.secret != "" {
				d.SecretRef = &backupv1.LocalReference{Name: tc.secret}
			}
			s, err := resolver(t, tc.config, bound, secretOf("shop", "own", "AWS_ACCESS_KEY_ID"), secretOf("system", "keys", "AWS_ACCESS_KEY_ID")).Store(t.Context(), "shop", tc.ref, d, "copy")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, want{s.Platforms, s.Generates}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOwnKey: which copies of a Backup's generated key exist, and which keys can read its backups.
func TestOwnKey(t *testing.T) {
	ours := func(key string, change func(*corev1.Secret)) *corev1.Secret {
		s := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-dump-key", Labels: map[string]string{backupv1.BackupLabel: "orders", "app.kubernetes.io/managed-by": "storeplane"}},
			Data:       map[string][]byte{"key": []byte(key)},
		}
		if change != nil {
			change(s)
		}
		return s
	}
	kept := func(key string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "storeplane-escrow", Name: "shop.orders.backup"}, Data: map[string][]byte{"key": []byte(key)}}
	}
	type want struct {
		Secret, Taken, Kept bool
		Identities          string
	}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    want
	}{
		"None":        {reason: "There may be none."},
		"Both":        {reason: "Mostly there are both.", objects: []client.Object{ours("k1\n", nil), kept("k1\n")}, want: want{Secret: true, Kept: true, Identities: "k1\n"}},
		"Differ":      {reason: "Where they differ, each has its backups.", objects: []client.Object{ours("k2\n", nil), kept("k1\n")}, want: want{Secret: true, Kept: true, Identities: "k2\nk1\n"}},
		"Lost":        {reason: "The copy outlives the namespace.", objects: []client.Object{kept("k1\n")}, want: want{Kept: true, Identities: "k1\n"}},
		"Plain":       {reason: "It may say that there is none.", objects: []client.Object{kept("")}, want: want{Kept: true}},
		"NotKept":     {reason: "Or be missing.", objects: []client.Object{ours("k1\n", nil)}, want: want{Secret: true, Identities: "k1\n"}},
		"Others":      {reason: "A Secret that was not made for it is not read.", objects: []client.Object{ours("k2\n", func(s *corev1.Secret) { s.Labels = nil })}, want: want{Taken: true}},
		"OtherBackup": {reason: "Nor one of another Backup.", objects: []client.Object{ours("k2\n", func(s *corev1.Secret) { s.Labels[backupv1.BackupLabel] = "x" })}, want: want{Taken: true}},
		"Owned": {reason: "Nor one that another object owns.", objects: []client.Object{ours("k2\n", func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{{Name: "x", UID: "x", Controller: new(true)}}
		})}, want: want{Taken: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, err := resolver(t, tc.objects...).OwnKey(t.Context(), "shop", "orders")
			if err != nil {
				t.Fatal(err)
			}
			got := want{Secret: o.Secret != nil, Taken: o.Taken, Kept: o.Kept != nil, Identities: string(o.Identities())}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKey(t *testing.T) {
	e := &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: "age", Key: "identity"}}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		e       *backupv1.Encryption
		want    string
	}{
		"None":     {reason: "No encryption, no key."},
		"There":    {reason: "A key.", objects: []client.Object{secretOf("shop", "age", "identity")}, e: e},
		"NoSecret": {reason: "A Secret that is not there.", e: e, want: "SecretNotFound: encryption.secretRef names Secret age, which does not exist in namespace shop"},
		"NoKey":    {reason: "A key that is not in it.", objects: []client.Object{secretOf("shop", "age", "other")}, e: e, want: "SecretKeyNotFound: encryption.secretRef names key identity, which Secret age does not have"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := resolver(t, tc.objects...).Key(t.Context(), "shop", tc.e)
			if diff := cmp.Diff(tc.want, words(err)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGranted: with the platform's credentials a namespace may read its own backups, and those that
// the platform has granted.
func TestGranted(t *testing.T) {
	config := &storeplanev1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: storeplanev1.ProviderConfigSpec{
		Bucket: "b", Credentials: storeplanev1.Credentials{Source: storeplanev1.CredentialsEnvironment},
		Grants: []storeplanev1.RestoreGrant{{Of: "lost", To: []string{"other", "shop"}}, {Of: "bank", To: []string{"other"}}},
	}}
	s, err := resolver(t, config).Store(t.Context(), "shop", nil, backupv1.Destination{Type: backupv1.S3, Bucket: "b"}, "copy")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"shop", "lost"}, s.Bounds.Reads); diff != "" {
		t.Errorf("Reads: -want, +got:\n%s", diff)
	}
}

// TestCheckRead: a namespace may itself grant access to its backups that were made with the
// platform's credentials.
func TestCheckRead(t *testing.T) {
	grant := func(of, to string) *backupv1.RestoreGrant {
		return &backupv1.RestoreGrant{ObjectMeta: metav1.ObjectMeta{Namespace: of, Name: "g"}, Spec: backupv1.RestoreGrantSpec{To: []string{to}}}
	}
	const refused = "NotGranted: source.location: backups of namespace bank may not be restored here with the credentials of ClusterProviderConfig default: ask for a RestoreGrant to shop in namespace bank, or the platform team for a grant where that one is lost, or name credentials of this namespace in destination.secretRef"
	cases := map[string]struct {
		reason string
		grant  *backupv1.RestoreGrant
		want   string
	}{
		"Granted": {reason: "The namespace has granted it.", grant: grant("bank", "shop")},
		"Other":   {reason: "To another namespace.", grant: grant("bank", "lab"), want: refused},
		"Strange": {reason: "A grant of another namespace says nothing of it.", grant: grant("shop", "shop"), want: refused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &backup.Bounds{Of: "ClusterProviderConfig default", Reads: []string{"shop"}}
			err := resolver(t, tc.grant).CheckRead(t.Context(), b, "bank", "shop")
			if diff := cmp.Diff(tc.want, words(err)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	r := resolver(t)
	r.Reader = interceptor.NewClient(r.Reader.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return &meta.NoKindMatchError{GroupKind: backupv1.GroupVersion.WithKind(backupv1.RestoreGrantKind).GroupKind()}
		},
	})
	err := r.CheckRead(t.Context(), &backup.Bounds{Of: "ClusterProviderConfig default", Reads: []string{"shop"}}, "bank", "shop")
	if diff := cmp.Diff(refused, words(err)); diff != "" {
		t.Errorf("where the kind is not activated: -want, +got:\n%s", diff)
	}
}

// TestHosts: the hosts are those to which the pods connect.
func TestHosts(t *testing.T) {
	cases := map[string]struct {
		reason string
		data   map[string]string
		want   []string
	}{
		"URI":     {reason: "The key that is named counts first.", data: map[string]string{"dsn": "postgresql://u:p@a:1/x", "uri": "postgresql://u:p@b:2/x", "host": "c"}, want: []string{"a:1"}},
		"Default": {reason: "Where it is missing the pods look for another.", data: map[string]string{"uri": "postgresql://u:p@b:2/x", "host": "c"}, want: []string{"b:2"}},
		"Newline": {reason: "A newline ends what an editor has written.", data: map[string]string{"host": "db.data\n", "port": "6432\r\n", "username": "u", "password": "p"}, want: []string{"db.data:6432"}},
		"None":    {reason: "The pods say why they cannot connect.", data: map[string]string{"dsn": "nonsense"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &corev1.Secret{Data: map[string][]byte{}}
			for k, v := range tc.data {
				s.Data[k] = []byte(v)
			}
			if diff := cmp.Diff(tc.want, hosts(s, "dsn")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestResolved: whether the pods of a DatabaseCluster authenticate to its store with a key.
func TestResolved(t *testing.T) {
	azure := backupv1.Destination{Type: backupv1.Azure, Bucket: "b", SecretRef: &backupv1.LocalReference{Name: "store"}}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		d       backupv1.Destination
		want    bool
	}{
		"Key":     {reason: "A key authenticates.", objects: []client.Object{secretOf("shop", "store", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY")}, d: azure, want: true},
		"Account": {reason: "The name of an account does not.", objects: []client.Object{secretOf("shop", "store", "AZURE_STORAGE_ACCOUNT")}, d: azure},
		"None":    {reason: "Without a Secret it is an identity.", d: backupv1.Destination{Type: backupv1.S3, Bucket: "b"}},
		"Missing": {reason: "One that is missing gives none.", d: azure, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := resolver(t, tc.objects...).Resolved(t.Context(), "shop", tc.d)
			if err != nil || got.Authenticates != tc.want {
				t.Errorf("%s\nwant %t, got %t, %v", tc.reason, tc.want, got.Authenticates, err)
			}
		})
	}
}
