package guardrails_test

import (
	"maps"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/apis"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/guardrails"
	"github.com/storeplane/storeplane/internal/settings"
	"github.com/storeplane/storeplane/internal/xrd"
)

// approved are the registries of the tests: a host, one with a port, paths, and one that is a
// repository.
var approved = []string{"registry.company.com", "ghcr.io/acme", "docker.io/library", "localhost:5000", "10.0.0.1:5000/team/shop"}

// installation is the policy of the tests.
var installation = settings.Policy{
	ApprovedRegistries:        approved,
	AllowedIngressHosts:       []string{"shop.example.com", "*.apps.example.com", "{namespace}.example.org"},
	AllowedIngressAnnotations: []string{"example.com/rate", "traefik.io/*"},
	AllowedTolerations:        []string{"example.com/gpu"},
	AllowedNodeSelectors:      []string{"disk", "zone=a"},
	AllowedPriorityClasses:    []string{"high", "low"},
	AllowedPodLabels:          []string{"team"},
	AllowedPodAnnotations:     []string{"sidecar.istio.io/inject", "example.com/*"},
	AllowedIngressClasses:     []string{"nginx", "infra/public", "{namespace}/own"},
}

// Ends of the messages about values that are not allowed.
const (
	otherHost          = ", which the installation does not allow: use shop.example.com or *.apps.example.com or default.example.org"
	otherAnnotation    = ", which the installation does not allow: use example.com/rate or traefik.io/*"
	otherTaint         = ", which the installation does not allow: use example.com/gpu"
	otherNode          = ", which the installation does not allow: use disk or zone=a"
	otherPodLabel      = ", which the installation does not allow: use team"
	otherPodAnnotation = ", which the installation does not allow: use sidecar.istio.io/inject or example.com/*"
	otherClass         = ", which the installation does not allow: use nginx or infra/public or default/own"
	otherPriority      = ", which the installation does not allow: use high or low"
)

// fromWhere is the end of the message about an image of another registry.
const fromWhere = ", which is from no approved registry: use an image from registry.company.com or ghcr.io/acme or docker.io/library or localhost:5000 or 10.0.0.1:5000/team/shop"

const (
	meansLatest = ", which means the latest: name a version or a digest in production"
	noLimit     = " has no limits.memory: set it in production, or leave out resources for the default"
)

// claims are those on which the functions and the API server must agree. Each that is refused comes
// with a similar one that is accepted.
var claims = map[string]struct {
	reason string
	kind   string
	spec   string

	// failures are the messages by rule.
	failures map[string][]string
}{
	"Registry":             {reason: "An image from elsewhere is refused.", kind: "WebApp", spec: "{image: evil.example.com/app:v1}", failures: unapproved("image is evil.example.com/app:v1")},
	"RegistryTwin":         {reason: "One from an approved host is not.", kind: "WebApp", spec: "{image: registry.company.com/app:v1}"},
	"RegistryDeep":         {reason: "However deep it is below.", kind: "WebApp", spec: "{image: registry.company.com/a/b/c}"},
	"RegistryLonger":       {reason: "A host that only begins the same is another.", kind: "WebApp", spec: "{image: registry.company.com.evil.com/app:v1}", failures: unapproved("image is registry.company.com.evil.com/app:v1")},
	"RegistryPort":         {reason: "So is one with another port.", kind: "WebApp", spec: "{image: registry.company.com:8443/app:v1}", failures: unapproved("image is registry.company.com:8443/app:v1")},
	"RegistryPortTwin":     {reason: "A port that is named is approved.", kind: "WebApp", spec: "{image: localhost:5000/app:v1}"},
	"RegistryNoPort":       {reason: "Without it the host is another.", kind: "WebApp", spec: "{image: localhost/app:v1}", failures: unapproved("image is localhost/app:v1")},
	"RegistryUpper":        {reason: "An upper-case letter makes a host.", kind: "WebApp", spec: "{image: Library/app:v1}", failures: unapproved("image is Library/app:v1")},
	"RegistryPath":         {reason: "A path is of whole segments.", kind: "WebApp", spec: "{image: ghcr.io/acme-evil/app:v1}", failures: unapproved("image is ghcr.io/acme-evil/app:v1")},
	"RegistryPathTwin":     {reason: "Below it is approved.", kind: "WebApp", spec: "{image: ghcr.io/acme/app:v1}"},
	"RegistryAbove":        {reason: "Above it is not.", kind: "WebApp", spec: "{image: ghcr.io/app:v1}", failures: unapproved("image is ghcr.io/app:v1")},
	"Repository":           {reason: "The last segment may be the image itself, by its tag,", kind: "WebApp", spec: "{image: '10.0.0.1:5000/team/shop:v1'}"},
	"RepositoryDigest":     {reason: "its digest,", kind: "WebApp", spec: "{image: '10.0.0.1:5000/team/shop@sha256:0123'}"},
	"RepositoryAlone":      {reason: "or by nothing.", kind: "WebApp", spec: "{image: '10.0.0.1:5000/team/shop'}"},
	"RepositoryLonger":     {reason: "Not one whose name is longer.", kind: "WebApp", spec: "{image: '10.0.0.1:5000/team/shops:v1'}", failures: unapproved("image is 10.0.0.1:5000/team/shops:v1")},
	"Docker":               {reason: "Without a registry it is one of Docker's library.", kind: "WebApp", spec: "{image: 'nginx:1.25'}"},
	"DockerUser":           {reason: "With a path alone it is a user's.", kind: "WebApp", spec: "{image: acme/nginx:1.25}", failures: unapproved("image is docker.io/acme/nginx:1.25")},
	"DockerFull":           {reason: "By its full name too.", kind: "WebApp", spec: "{image: docker.io/library/nginx}"},
	"Sidecar":              {reason: "So are the containers beside it.", kind: "WebApp", spec: "{image: 'nginx:1', initContainers: [{name: wait, image: quay.io/wait:1}, {name: same}], sidecars: [{name: proxy, image: quay.io/proxy:1}]}", failures: unapproved("initContainers[wait].image is quay.io/wait:1", "sidecars[proxy].image is quay.io/proxy:1")},
	"SidecarTwin":          {reason: "They may be approved.", kind: "WebApp", spec: "{image: 'nginx:1', initContainers: [{name: wait, image: 'wait:1'}], sidecars: [{name: proxy, image: 'proxy:1'}]}"},
	"Tiers":                {reason: "Both tiers of a shop are judged.", kind: "EcommercePlatform", spec: "{frontend: {image: quay.io/f:1}, backend: {image: quay.io/b:1, sidecars: [{name: proxy, image: quay.io/p:1}]}}", failures: unapproved("frontend.image is quay.io/f:1", "backend.image is quay.io/b:1", "backend.sidecars[proxy].image is quay.io/p:1")},
	"Store":                {reason: "A shop for production is approved.", kind: "EcommercePlatform", spec: "{environment: production, frontend: {replicas: 5, image: 'registry.company.com/ecommerce-frontend:v2.1.0'}, backend: {replicas: 3, image: 'registry.company.com/ecommerce-backend:v2.1.0'}, database: {type: postgresql, version: '17', storage: 500Gi}, cache: {enabled: true}, monitoring: {enabled: true}}"},
	"Latest":               {reason: "Production names its versions.", kind: "WebApp", spec: "{environment: production, image: 'nginx:latest'}", failures: latest("image is nginx:latest")},
	"LatestTwin":           {reason: "Then it is accepted.", kind: "WebApp", spec: "{environment: production, image: 'nginx:1.25'}"},
	"LatestStaging":        {reason: "Staging need not.", kind: "WebApp", spec: "{environment: staging, image: 'nginx:latest'}"},
	"LatestNone":           {reason: "Nor does a claim that says no environment.", kind: "WebApp", spec: "{image: nginx}"},
	"LatestSilent":         {reason: "No tag means the latest.", kind: "WebApp", spec: "{environment: production, image: 'localhost:5000/nginx'}", failures: latest("image is localhost:5000/nginx")},
	"LatestDigest":         {reason: "A digest is the best of versions.", kind: "WebApp", spec: "{environment: production, image: 'nginx:latest@sha256:0123'}"},
	"LatestLike":           {reason: "A tag that ends like it is another.", kind: "WebApp", spec: "{environment: production, image: 'nginx:not-latest'}"},
	"LatestTiers":          {reason: "All of a shop's images need one.", kind: "EcommercePlatform", spec: "{environment: production, frontend: {image: f, initContainers: [{name: wait, image: 'w:latest'}]}, backend: {image: b}}", failures: latest("frontend.image is f", "frontend.initContainers[wait].image is w:latest", "backend.image is b")},
	"Limits":               {reason: "Resources of production limit memory.", kind: "WebApp", spec: "{environment: production, image: 'nginx:1', resources: {requests: {memory: 1Gi}}}", failures: limits("resources")},
	"LimitsTwin":           {reason: "Then they are accepted.", kind: "WebApp", spec: "{environment: production, image: 'nginx:1', resources: {limits: {memory: 1Gi}}}"},
	"LimitsNumber":         {reason: "A number is bytes.", kind: "WebApp", spec: "{environment: production, image: 'nginx:1', resources: {limits: {memory: 1000000000}}}"},
	"LimitsZero":           {reason: "Zero is no limit.", kind: "WebApp", spec: "{environment: production, image: 'nginx:1', resources: {limits: {memory: 0}}}", failures: limits("resources")},
	"LimitsCPU":            {reason: "Nor is one of the CPU enough.", kind: "WebApp", spec: "{environment: production, image: 'nginx:1', resources: {limits: {cpu: 1}}}", failures: limits("resources")},
	"LimitsStaging":        {reason: "Staging may go without.", kind: "WebApp", spec: "{environment: staging, image: 'nginx:1', resources: {requests: {memory: 1Gi}}}"},
	"LimitsBeside":         {reason: "All that runs beside the application is bound too.", kind: "WebApp", spec: "{environment: production, image: 'nginx:1', resources: {limits: {memory: 1Gi}}, initContainers: [{name: wait, resources: {limits: {cpu: 1}}}], sidecars: [{name: proxy, resources: {requests: {cpu: 1}}}], cronJobs: [{name: clean, schedule: '@daily', args: [a], resources: {requests: {cpu: 1}}}], workers: [{name: mail, args: [a], resources: {limits: {memory: '0'}}}, {name: post, args: [a]}]}", failures: limits("initContainers[wait].resources", "sidecars[proxy].resources", "cronJobs[clean].resources", "workers[mail].resources")},
	"LimitsTiers":          {reason: "So are a shop's tiers.", kind: "EcommercePlatform", spec: "{environment: production, frontend: {image: 'f:1', resources: {limits: {cpu: 1}}}, backend: {image: 'b:1', cronJobs: [{name: clean, schedule: '@daily', args: [a], resources: {limits: {cpu: 1}}}], workers: [{name: mail, args: [a], resources: {limits: {cpu: 1}}}]}, database: {resources: {requests: {cpu: 1}}}}", failures: limits("frontend.resources", "backend.cronJobs[clean].resources", "backend.workers[mail].resources", "database.resources")},
	"LimitsDatabase":       {reason: "And a database.", kind: "DatabaseCluster", spec: "{environment: production, size: 3, version: '17', resources: {requests: {memory: 1Gi}}}", failures: limits("resources")},
	"LimitsDatabaseTwin":   {reason: "With a limit it is accepted.", kind: "DatabaseCluster", spec: "{environment: production, size: 3, version: '17', resources: {limits: {memory: 1Gi}}}"},
	"LimitsDatabaseNone":   {reason: "Without resources it has production's.", kind: "DatabaseCluster", spec: "{environment: production, size: 3, version: '17'}"},
	"Host":                 {reason: "A host that is not listed is refused.", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: bank.example.com}}", failures: failing(guardrails.AllowedIngressHosts, otherHost, []string{"ingress.host is bank.example.com"})},
	"HostTwin":             {reason: "One that is listed is not.", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: shop.example.com}}"},
	"HostBelow":            {reason: "A star is all below a domain,", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: a.b.apps.example.com}}"},
	"HostDomain":           {reason: "not the domain,", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: apps.example.com}}", failures: failing(guardrails.AllowedIngressHosts, otherHost, []string{"ingress.host is apps.example.com"})},
	"HostLike":             {reason: "and not one whose name ends like it.", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: evilapps.example.com}}", failures: failing(guardrails.AllowedIngressHosts, otherHost, []string{"ingress.host is evilapps.example.com"})},
	"HostNamespace":        {reason: "Each namespace may have its own.", kind: "EcommercePlatform", spec: "{frontend: {image: 'f:1'}, backend: {image: 'b:1'}, ingress: {host: default.example.org}}"},
	"HostOtherNamespace":   {reason: "And not another's.", kind: "EcommercePlatform", spec: "{frontend: {image: 'f:1'}, backend: {image: 'b:1'}, ingress: {host: other.example.org}}", failures: failing(guardrails.AllowedIngressHosts, otherHost, []string{"ingress.host is other.example.org"})},
	"Annotation":           {reason: "Annotations may be programs of the controller.", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: shop.example.com, annotations: {nginx.ingress.kubernetes.io/server-snippet: x, example.com/rate: '1', a: b}}}", failures: failing(guardrails.AllowedIngressAnnotations, otherAnnotation, []string{"ingress.annotations sets a and 1 more"})},
	"AnnotationTwin":       {reason: "Those that are listed are not refused, nor is a prefix.", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: shop.example.com, annotations: {example.com/rate: '1', traefik.io/router: x}}}"},
	"AnnotationLike":       {reason: "A longer key is another.", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: shop.example.com, annotations: {example.com/rate-burst: '1'}}}", failures: failing(guardrails.AllowedIngressAnnotations, otherAnnotation, []string{"ingress.annotations sets example.com/rate-burst"})},
	"AnnotationIssuer":     {reason: "An issuer is an annotation too.", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: shop.example.com, tls: {issuer: internal-ca}, annotations: {a: b}}}", failures: failing(guardrails.AllowedIngressAnnotations, otherAnnotation, []string{"ingress.annotations sets a", "ingress.tls.issuer sets cert-manager.io/cluster-issuer"})},
	"AnnotationSecret":     {reason: "A Secret of the claim's own is none.", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: shop.example.com, tls: {secretName: shop-tls}}}"},
	"Class":                {reason: "Another controller may be another team's.", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: shop.example.com, className: internal}}", failures: failing(guardrails.AllowedIngressClasses, otherClass, []string{"ingress.className is internal"})},
	"ClassTwin":            {reason: "A listed one may be named.", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: shop.example.com, className: nginx}}"},
	"ClassNone":            {reason: "Without one it is the installation's.", kind: "EcommercePlatform", spec: "{frontend: {image: 'f:1'}, backend: {image: 'b:1'}, ingress: {host: shop.example.com, className: ''}}"},
	"ClassAnnotation":      {reason: "The annotation of old names one, too.", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: shop.example.com, annotations: {kubernetes.io/ingress.class: internal}}}", failures: merged(failing(guardrails.AllowedIngressClasses, otherClass, []string{"ingress.annotations names class internal"}), failing(guardrails.AllowedIngressAnnotations, otherAnnotation, []string{"ingress.annotations sets kubernetes.io/ingress.class"}))},
	"Gateway":              {reason: "So is another Gateway.", kind: "EcommercePlatform", spec: "{frontend: {image: 'f:1'}, backend: {image: 'b:1'}, ingress: {host: shop.example.com, gateway: {name: private, namespace: infra}}}", failures: failing(guardrails.AllowedIngressClasses, otherClass, []string{"ingress.gateway is infra/private"})},
	"GatewayTwin":          {reason: "A listed one may be named.", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: shop.example.com, gateway: {name: public, namespace: infra}}}"},
	"GatewayOwn":           {reason: "Without a namespace it is the claim's own.", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: shop.example.com, gateway: {name: own}}}"},
	"GatewayOther":         {reason: "A name alone is a class.", kind: "WebApp", spec: "{image: 'nginx:1', ingress: {host: shop.example.com, gateway: {name: nginx}}}", failures: failing(guardrails.AllowedIngressClasses, otherClass, []string{"ingress.gateway is default/nginx"})},
	"Toleration":           {reason: "Who tolerates the control plane's taint runs there.", kind: "WebApp", spec: "{image: 'nginx:1', tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]}", failures: failing(guardrails.AllowedTolerations, otherTaint, []string{"tolerations tolerates node-role.kubernetes.io/control-plane"})},
	"TolerationTwin":       {reason: "A listed taint may be tolerated.", kind: "WebApp", spec: "{image: 'nginx:1', tolerations: [{key: example.com/gpu, operator: Exists}]}"},
	"TolerationAll":        {reason: "Without a key it is every taint.", kind: "WebApp", spec: "{image: 'nginx:1', tolerations: [{key: example.com/gpu}, {operator: Exists}, {key: a}]}", failures: failing(guardrails.AllowedTolerations, otherTaint, []string{"tolerations tolerates every taint and 1 more"})},
	"NodeSelector":         {reason: "Nodes of others are theirs.", kind: "WebApp", spec: "{image: 'nginx:1', nodeSelector: {zone: b, disk: fast}}", failures: failing(guardrails.AllowedNodeSelectors, otherNode, []string{"nodeSelector asks for zone=b"})},
	"NodeSelectorTwin":     {reason: "A key is each of its values.", kind: "WebApp", spec: "{image: 'nginx:1', nodeSelector: {zone: a, disk: fast}}"},
	"NodeSelectorLike":     {reason: "A longer key is another.", kind: "WebApp", spec: "{image: 'nginx:1', nodeSelector: {disk-type: fast}}", failures: failing(guardrails.AllowedNodeSelectors, otherNode, []string{"nodeSelector asks for disk-type=fast"})},
	"NodeAffinity":         {reason: "An affinity says more than a list could allow.", kind: "WebApp", spec: "{image: 'nginx:1', affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]}}}}", failures: failing(guardrails.AllowedNodeSelectors, otherNode, []string{"affinity asks for nodeAffinity instead of nodeSelector"})},
	"PodAffinity":          {reason: "One to other pods chooses no nodes.", kind: "WebApp", spec: "{image: 'nginx:1', affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}}"},
	"NoNodeAffinity":       {reason: "Null asks for nothing.", kind: "WebApp", spec: "{image: 'nginx:1', affinity: {nodeAffinity: null}}"},
	"PodLabel":             {reason: "Who reads labels of pods acts by them.", kind: "WebApp", spec: "{image: 'nginx:1', podLabels: {team: shop, azure.workload.identity/use: 'true'}}", failures: failing(guardrails.AllowedPodLabels, otherPodLabel, []string{"podLabels sets azure.workload.identity/use"})},
	"PodAnnotation":        {reason: "So does who reads their annotations.", kind: "DatabaseCluster", spec: "{size: 1, version: '17', podAnnotations: {sidecar.istio.io/proxyImage: x, iam.amazonaws.com/role: reader, sidecar.istio.io/inject: 'false'}}", failures: failing(guardrails.AllowedPodAnnotations, otherPodAnnotation, []string{"podAnnotations sets iam.amazonaws.com/role and 1 more"})},
	"PodMarksOfTiers":      {reason: "All of a shop's pods are judged.", kind: "EcommercePlatform", spec: "{frontend: {image: 'f:1', podLabels: {a: b}}, backend: {image: 'b:1', podLabels: {team: shop}}, database: {podLabels: {c: d}}}", failures: failing(guardrails.AllowedPodLabels, otherPodLabel, []string{"frontend.podLabels sets a", "database.podLabels sets c"})},
	"PriorityClass":        {reason: "Who comes first is not the team's to say.", kind: "WebApp", spec: "{image: 'nginx:1', priorityClassName: system-cluster-critical}", failures: failing(guardrails.AllowedPriorityClasses, otherPriority, []string{"priorityClassName is system-cluster-critical"})},
	"PriorityClassTwin":    {reason: "Unless it is listed.", kind: "WebApp", spec: "{image: 'nginx:1', priorityClassName: high}"},
	"SchedulingOfTiers":    {reason: "Both tiers of a shop are judged.", kind: "EcommercePlatform", spec: "{frontend: {image: 'f:1', nodeSelector: {a: b}}, backend: {image: 'b:1', nodeSelector: {c: d}}}", failures: failing(guardrails.AllowedNodeSelectors, otherNode, []string{"frontend.nodeSelector asks for a=b", "backend.nodeSelector asks for c=d"})},
	"SchedulingOfServers":  {reason: "So are a database's servers,", kind: "DatabaseCluster", spec: "{size: 3, version: '17', tolerations: [{key: a}], priorityClassName: system-node-critical}", failures: merged(failing(guardrails.AllowedTolerations, otherTaint, []string{"tolerations tolerates a"}), failing(guardrails.AllowedPriorityClasses, otherPriority, []string{"priorityClassName is system-node-critical"}))},
	"SchedulingOfDatabase": {reason: "and those of a shop's.", kind: "EcommercePlatform", spec: "{frontend: {image: 'f:1'}, backend: {image: 'b:1'}, database: {nodeSelector: {a: b}}}", failures: failing(guardrails.AllowedNodeSelectors, otherNode, []string{"database.nodeSelector asks for a=b"})},
	"All": {
		reason: "What breaks several rules is told of each.", kind: "WebApp", spec: "{environment: production, image: quay.io/app, resources: {limits: {cpu: 1}}}",
		failures: map[string][]string{
			guardrails.ApprovedRegistries:   {"image is quay.io/app" + fromWhere},
			guardrails.NoLatestInProduction: {"image is quay.io/app" + meansLatest},
			guardrails.LimitsInProduction:   {"resources" + noLimit},
		},
	},
}

func unapproved(of ...string) map[string][]string {
	return failing(guardrails.ApprovedRegistries, fromWhere, of)
}
func latest(of ...string) map[string][]string {
	return failing(guardrails.NoLatestInProduction, meansLatest, of)
}
func limits(of ...string) map[string][]string {
	return failing(guardrails.LimitsInProduction, noLimit, of)
}

func merged(all ...map[string][]string) map[string][]string {
	out := map[string][]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

func failing(rule, end string, of []string) map[string][]string {
	out := make([]string, 0, len(of))
	for _, o := range of {
		out = append(out, o+end)
	}
	return map[string][]string{rule: out}
}

var schemas = func() xrd.Schemas {
	s, err := xrd.Load(apis.Definitions)
	if err != nil {
		panic(err)
	}
	return s
}()

// claim returns a claim of a kind as an application team writes it.
func claim(t testing.TB, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	group := "apps.example.com/v1"
	if kind == "EcommercePlatform" {
		group = "platform.example.com/v1"
	}
	j, err := yaml.YAMLToJSON([]byte("apiVersion: " + group + "\nkind: " + kind + "\nmetadata: {name: store, namespace: default}\nspec: " + spec))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(j, &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// check returns the verdicts of the functions on a claim.
func check(t testing.TB, u *unstructured.Unstructured, p settings.Policy) []guardrails.Verdict {
	t.Helper()
	return guardrails.Check(subject(t, u), p)
}

func subject(t testing.TB, u *unstructured.Unstructured) guardrails.Subject {
	t.Helper()
	defaulted, err := schemas.Default(u)
	if err != nil {
		t.Fatal(err)
	}
	b, err := defaulted.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	out, err := guardrails.Of(compose.NewClaim(&fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: s}}}, nil))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// failuresOf returns the messages of failed verdicts, by rule.
func failuresOf(verdicts []guardrails.Verdict) map[string][]string {
	out := map[string][]string{}
	for _, v := range verdicts {
		if v.Result == guardrails.Fail {
			out[v.Rule] = append(out[v.Rule], v.Message)
		}
	}
	return out
}
