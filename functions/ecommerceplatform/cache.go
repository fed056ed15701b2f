package ecommerceplatform

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/label"
)

const (
	cacheApp  = "redis"
	cachePort = 6379

	keyPassword = "password"
	keySalt     = "salt"
	keyConf     = "redis.conf"

	// cacheConfDir is the folder with Redis' configuration.
	cacheConfDir = "/etc/redis"

	// passwordVersionAnnotation is an annotation of the pods that changes with the password, so
	// that they are replaced: Redis reads it only when it starts.
	passwordVersionAnnotation = "storeplane.example.com/password-version"

	// redisUser is the uid and gid of redis in package/images/redis.
	redisUser = 999
	redisTag  = "8"
)

// readCache reads the passwords and certificates of the cache, and generates those that are
// missing. All pods that use the password are replaced when it changes, so a password that was
// removed from the Secret is generated again.
func (s *shop) readCache(c *compose.Claim) (err error) {
	if !s.hasCache() {
		return nil
	}
	if s.cachePassword, err = c.Rotatable(cacheSecret, keyPassword, compose.Source.Password); err != nil {
		return err
	}
	if err := s.checkCachePassword(); err != nil {
		return err
	}
	if s.cacheSalt, err = c.Rotatable(cacheSecret, keySalt, compose.Source.Password); err != nil {
		return err
	}
	if s.monitored() {
		if s.metricsPassword, err = c.Rotatable(cacheSecret, keyMetricsPassword, compose.Source.Password); err != nil {
			return err
		}
	}
	if err := s.drawCacheTLS(c); err != nil {
		return err
	}
	if err := s.checkCacheAuthority(); err != nil {
		return err
	}
	s.cacheVersion = s.storedVersion(c)
	return nil
}

// cacheSecret returns the Secret with the password, the URI and the authority for the backend, and
// the part of Redis' configuration that contains the password.
func (s *shop) cacheSecret() *corev1.Secret {
	host, scheme := s.cacheHost(), "redis"
	if s.cacheHasTLS() {
		scheme = "rediss"
	}
	values := map[string]string{
		keyPassword:          s.cachePassword,
		keySalt:              s.cacheSalt,
		"host":               host,
		"port":               strconv.Itoa(cachePort),
		appsv1.ConnectionURI: scheme + "://" + url.UserPassword("", s.cachePassword).String() + "@" + net.JoinHostPort(host, strconv.Itoa(cachePort)) + "/0",
		keyConf:              s.redisConf(),
	}
	if s.monitored() {
		values[keyMetricsPassword], values[keyMetricsConf] = s.metricsPassword, s.metricsConf()
	}
	if s.cacheHasTLS() {
		values[build.KeyAuthority] = s.cacheCertificates.Authority.Certificate
	}
	return build.Secret(s.Meta(cache, cacheApp), values)
}

// checkCachePassword refuses a password, set by a user, that redis.conf
// would read as something else.
func (s *shop) checkCachePassword() error {
	for _, r := range s.cachePassword {
		if r <= ' ' || r > '~' || strings.ContainsRune(`"'\`, r) {
			return compose.Invalidf("Secret %s: password may hold only printable ASCII characters but spaces, quotes and backslashes: change it, or delete the key to get another one", s.Name(cache))
		}
	}
	return nil
}

// storedVersion returns a digest of what Redis and its clients read in the Secret. It is a
// digest of what the Secret holds, not of what it is to hold: otherwise pods could be
// replaced before the Secret changes, and keep the old password. It reveals nothing without
// the salt, which is as secret.
func (s *shop) storedVersion(c *compose.Claim) string {
	salt, conf, authority := s.cacheSalt, s.redisConf(), s.cacheCertificates.Authority.Certificate
	if secret := c.Observed(cacheSecret); secret != nil && !c.IsReview() {
		salt, _ = compose.SecretValue(secret, keySalt)
		conf, _ = compose.SecretValue(secret, keyConf)
		authority, _ = compose.SecretValue(secret, build.KeyAuthority)
	}
	return build.KeyedDigest(salt, conf+authority)
}

func (s *shop) cacheHost() string {
	return fmt.Sprintf("%s.%s.svc", s.Name(cache), s.Namespace)
}

// redisConf returns the configuration of Redis as a cache: nothing is written to
// disk, so it starts at once.
func (s *shop) redisConf() string {
	listen := fmt.Sprintf("port %d\n", cachePort)
	if s.cacheHasTLS() {
		listen = redisTLS()
	}
	return fmt.Sprintf(`bind * -::*
%srequirepass %s
save ""
appendonly no
dir /tmp
`, listen, s.cachePassword)
}

// cacheArgs returns Redis' arguments, which contain the options that a claim can change. Redis
// reads its configuration only when it starts: a change of the arguments replaces the pod.
func (s *shop) cacheArgs() []string {
	memory := s.cacheMemory()
	policy := platformv1.EvictAllKeysLRU
	if c := s.spec.Cache; c != nil && c.EvictionPolicy != "" {
		policy = c.EvictionPolicy
	}
	args := []string{path.Join(cacheConfDir, keyConf), "--maxmemory", strconv.FormatInt(memory.Value(), 10), "--maxmemory-policy", string(policy)}
	return append(args, s.metricsArgs()...)
}

// cacheMemory returns the memory for Redis' data. validate has checked the quantity.
func (s *shop) cacheMemory() resource.Quantity {
	text := s.profile.CacheMemory
	if s.spec.Cache != nil && s.spec.Cache.Memory != "" {
		text = s.spec.Cache.Memory
	}
	q, _ := resource.ParseQuantity(text)
	return q
}

// cacheLimit returns the memory limit of Redis' container. Beside its data Redis needs memory for
// clients and for fragmentation.
func (s *shop) cacheLimit() string {
	memory := s.cacheMemory()
	limit := memory.DeepCopy()
	limit.Add(memory)
	limit.Add(resource.MustParse("32Mi"))
	return limit.String()
}

func (s *shop) cacheService() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: s.Meta(cache, cacheApp),
		Spec: corev1.ServiceSpec{
			Selector: s.Selector(cache),
			// There is only one pod, and clients notice by themselves if it does not answer. Its
			// metrics exporter, while it is not ready, must not remove the pod from the Service.
			PublishNotReadyAddresses: true,
			Ports:                    []corev1.ServicePort{{Name: "redis", Port: cachePort, TargetPort: intstr.FromString("redis")}},
		},
	}
}

// cachePolicy admits the backend's pods to Redis, and the monitoring namespace to the metrics.
// Redis opens no connections, so all egress is denied.
func (s *shop) cachePolicy() *networkingv1.NetworkPolicy {
	ways := []build.Admit{{
		From:  []networkingv1.NetworkPolicyPeer{build.Pods(map[string]string{label.Instance: s.Name(backend)})},
		Ports: []int32{cachePort},
	}}
	if s.monitored() {
		ways = append(ways, build.Scrapers(s.settings.Monitoring.Namespace, cacheMetricsPort)...)
	}
	return build.Egress(build.NetworkPolicy(s.Scope, cache, cacheApp, ways...))
}

// awayFor is how many seconds a node may be not ready or unreachable before the cache is started on
// another one. The default of Kubernetes is 300.
const awayFor = 30

// cacheTolerations returns the tolerations of a node that is not ready or unreachable. They are
// short, since the cache keeps nothing on the node that is worth waiting for.
func cacheTolerations() []corev1.Toleration {
	away := func(taint string) corev1.Toleration {
		return corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(awayFor))}
	}
	return []corev1.Toleration{away(corev1.TaintNodeNotReady), away(corev1.TaintNodeUnreachable)}
}

// cacheGrace is how long the cache may take to start until its pod is requested: as a rule it is
// ready before.
const cacheGrace = 6 * time.Second

// awaitCache reads what keeps the cache's pod from becoming ready.
func (s *shop) awaitCache(c *compose.Claim) error {
	live := struct {
		Status k8sappsv1.DeploymentStatus `json:"status"`
	}{}
	if ok, err := c.ReadObserved(cacheServer, &live); err != nil || !ok || !s.hasCache() {
		return err
	}
	s.cacheWaits = build.AwaitDeployment(c, cache, &live.Status, cacheGrace, nil)
	if s.cacheWaits.Lasting {
		s.podFailure = cmp.Or(s.podFailure, s.cacheWaits.Message)
	}
	return nil
}

// cacheHealth returns the health of the cache's Deployment, with what its pod waits for.
func (s *shop) cacheHealth(deployment *structpb.Struct) health.Status {
	return health.Of(deployment).Because(s.cacheWaits.Message)
}

// cacheServer returns the Deployment of the one Redis. A StatefulSet would not replace a pod before
// its node reports that the pod is gone, which a node that has failed never does.
func (s *shop) cacheServer() *k8sappsv1.Deployment {
	annotations := map[string]string{passwordVersionAnnotation: s.cacheVersion}
	mounts := []corev1.VolumeMount{
		{Name: "config", MountPath: cacheConfDir, ReadOnly: true},
		build.TmpMount(),
	}
	items := []corev1.KeyToPath{{Key: keyConf, Path: keyConf}}
	if s.monitored() {
		items = append(items, corev1.KeyToPath{Key: keyMetricsConf, Path: keyMetricsConf})
	}
	volumes := []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName:  s.Name(cache),
			DefaultMode: new(int32(0o440)),
			Items:       items,
		}}},
		build.Tmp(s.cacheLimit()),
	}
	if s.cacheServesTLS {
		annotations[certificateVersionAnnotation] = s.cacheCertificateVersion
		mounts = append(mounts, corev1.VolumeMount{Name: "certificate", MountPath: certificateDir, ReadOnly: true})
		volumes = append(volumes, s.cacheCertificateVolume())
	}

	containers := []corev1.Container{s.redis(mounts)}
	if s.monitored() {
		containers = append(containers, s.cacheExporter())
	}
	return &k8sappsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: k8sappsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: s.Meta(cache, cacheApp),
		Spec: k8sappsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: s.Selector(cache)},
			// With two pods at a time a value that is invalidated in one would stay in the other.
			Strategy:             k8sappsv1.DeploymentStrategy{Type: k8sappsv1.RecreateDeploymentStrategyType},
			RevisionHistoryLimit: new(int32(5)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      s.Labels(cache, cacheApp),
					Annotations: annotations,
				},
				Spec: corev1.PodSpec{
					ServiceAccountName:            s.Name(cache),
					AutomountServiceAccountToken:  new(false),
					EnableServiceLinks:            new(false),
					SecurityContext:               build.PodSecurity(redisUser, redisUser),
					TerminationGracePeriodSeconds: new(int64(10)),
					Tolerations:                   cacheTolerations(),
					Containers:                    containers,
					Volumes:                       volumes,
				},
			},
		},
	}
}

// redis returns the container of Redis. It is ready as soon as it answers, since it loads no data.
func (s *shop) redis(mounts []corev1.VolumeMount) corev1.Container {
	memory, limit := s.cacheMemory(), s.cacheLimit()
	alive := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("redis")}}
	return corev1.Container{
		Name:            cacheApp,
		Image:           s.settings.Image("redis:" + redisTag),
		Args:            s.cacheArgs(),
		Ports:           []corev1.ContainerPort{{Name: "redis", ContainerPort: cachePort}},
		Resources:       build.Resources(s.profile.CacheCPU, memory.String(), limit),
		SecurityContext: build.ContainerSecurity(),
		StartupProbe:    &corev1.Probe{ProbeHandler: alive, PeriodSeconds: 1, FailureThreshold: 60},
		ReadinessProbe:  &corev1.Probe{ProbeHandler: alive, PeriodSeconds: 5},
		LivenessProbe:   &corev1.Probe{ProbeHandler: alive, PeriodSeconds: 10, FailureThreshold: 6},
		VolumeMounts:    mounts,
	}
}
