package ecommerceplatform_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/storeplane/storeplane/functions/functionstest"
)

func TestRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"MySQLVersion":     {reason: "Versions are those of the engine.", spec: "{frontend: {image: f}, backend: {image: b}, database: {type: mysql, version: '17'}}", want: `database.version "17" is not like 9.7 or 9.7.4`},
		"MySQLSize":        {reason: "A group has an odd size.", spec: "{frontend: {image: f}, backend: {image: b}, database: {type: mysql, size: 2}}", want: "database.size must be odd with engine mysql, is 2: a group of 2 survives the loss of no more servers than one of 1, since a majority has to be left"},
		"MySQLPlace":       {reason: "There is no place for its dumps.", spec: "{frontend: {image: f}, backend: {image: b}, database: {type: mysql, backup: {enabled: true}}}", want: "database.backup.destination is needed with engine mysql, and its bucket with type volume: name a store or a volume claim, or have the platform team set a store in EnvironmentConfig storeplane"},
		"MySQLIncremental": {reason: "Each dump is a whole one.", spec: "{frontend: {image: f}, backend: {image: b}, database: {type: mysql, backup: {enabled: true, incrementalSchedule: '0 * * * *', destination: {bucket: v}}}}", want: "database.backup.incrementalSchedule is not available with engine mysql: each backup is a whole one: leave it out, and set backup.method to physical to archive what is written between them"},
		"BackupMethod":     {reason: "Its own backups are physical.", spec: "{frontend: {image: f}, backend: {image: b}, database: {backup: {enabled: true, method: logical}}}", want: "database.backup.method logical is not available with engine postgresql, whose backups are physical: leave it out, and create a Backup of method logical beside the claim"},
		"BackupSchedule":   {reason: "There is no minute 61.", spec: "{frontend: {image: f}, backend: {image: b}, database: {backup: {enabled: true, schedule: '61 * * * *'}}}", want: `database.backup.schedule: schedule "61 * * * *" is no cron expression: end of range (61) above maximum (59): 61`},
		"NoFrontend":       {reason: "A shop has a frontend.", spec: "{backend: {image: b}}", want: "frontend.image is missing"},
		"NoBackend":        {reason: "And a backend.", spec: "{frontend: {image: f}}", want: "backend.image is missing"},
		"Replicas0":        {reason: "No pods is no frontend.", spec: "{environment: development, frontend: {image: f, replicas: 0}, backend: {image: b}}", want: "frontend.replicas must be 1 to 100 in development, is 0"},
		"Replicas0Default": {reason: "The environment is named also when the claim does not.", spec: "{frontend: {image: f, replicas: 0}, backend: {image: b}}", want: "frontend.replicas must be 1 to 100 in development, is 0"},
		"Production11":     {reason: "Production has at most 10.", spec: "{environment: production, frontend: {image: f}, backend: {image: b, replicas: 11}}", want: "backend.replicas must be 1 to 10 in production, is 11"},
		"Cron61":           {reason: "There is no minute 61.", spec: `{frontend: {image: f}, backend: {image: b, cronJobs: [{name: clean, schedule: "61 * * * *"}]}}`, want: `backend.cronJobs clean: schedule "61 * * * *" is no cron expression: end of range (61) above maximum (59): 61`},
		"CronZone":         {reason: "There is no such zone.", spec: `{frontend: {image: f}, backend: {image: b, cronJobs: [{name: clean, schedule: "@daily", timeZone: Mars/Base}]}}`, want: `backend.cronJobs clean: timeZone "Mars/Base" is not known: use a name like Europe/Paris`},
		"Storage":          {reason: "No quantity.", spec: "{frontend: {image: f}, backend: {image: b}, database: {storage: big}}", want: `database.storage must be a quantity above zero, like 20Gi: is "big"`},
		"StorageZero":      {reason: "Nothing is too little.", spec: "{frontend: {image: f}, backend: {image: b}, database: {storage: '0'}}", want: `database.storage must be a quantity above zero, like 20Gi: is "0"`},
		"DatabaseVersion":  {reason: "What a DatabaseCluster would refuse is refused with the path of the shop's.", spec: "{frontend: {image: f}, backend: {image: b}, database: {version: '9'}}", want: "database.version 9 is not supported: PostgreSQL 14 to 18 are"},
		"DatabaseAlone":    {reason: "There is no standby to acknowledge.", spec: "{frontend: {image: f}, backend: {image: b}, database: {size: 1, synchronous: true}}", want: "database.synchronous needs a size of at least 2, is 1"},
		"DatabaseOwn":      {reason: "Some parameters are Storeplane's.", spec: "{frontend: {image: f}, backend: {image: b}, database: {parameters: {ssl: 'off'}}}", want: "database.parameters.ssl is set by Storeplane: leave it out"},
		"Eviction":         {reason: "Redis knows no such policy.", spec: "{frontend: {image: f}, backend: {image: b}, cache: {evictionPolicy: lru}}", want: `cache.evictionPolicy must be one of noeviction, allkeys-lru, allkeys-lfu, allkeys-random, volatile-lru, volatile-lfu, volatile-random, volatile-ttl: is "lru"`},
		"Worker":           {reason: "Workers are counted too.", spec: "{environment: production, frontend: {image: f}, backend: {image: b, workers: [{name: mail, replicas: 11}]}}", want: "backend.workers mail: replicas must be 1 to 10 in production, is 11"},
		"Volume":           {reason: "What a WebApp would refuse is refused with the tier's path.", spec: "{frontend: {image: f, volumes: [{name: data, mountPath: data, emptyDir: {}}]}, backend: {image: b}}", want: `frontend.volumes data: mountPath must be an absolute path like /data, is "data"`},
		"Memory":           {reason: "No quantity.", spec: "{frontend: {image: f}, backend: {image: b}, cache: {memory: big}}", want: `cache.memory must be a quantity of at least 16Mi: is "big"`},
		"MemoryLittle":     {reason: "Redis does not start with so little.", spec: "{frontend: {image: f}, backend: {image: b}, cache: {memory: 1Mi}}", want: `cache.memory must be a quantity of at least 16Mi: is "1Mi"`},
		"MemoryMinus":      {reason: "Nor with less than nothing.", spec: "{frontend: {image: f}, backend: {image: b}, cache: {memory: '-1Gi'}}", want: `cache.memory must be a quantity of at least 16Mi: is "-1Gi"`},
		"ConfigKey":        {reason: "No ConfigMap holds such a key.", spec: "{frontend: {image: f}, backend: {image: b}, config: {'a b': c}}", want: `config: key "a b" may hold only letters, digits, '-', '_' and '.'`},
		"EnvFrom": {
			reason: "The config is one entry of a tier's own.",
			spec:   "{frontend: {image: f}, backend: {image: b, envFrom: [" + strings.Repeat("{secretRef: {name: s}},", 33) + "]}, config: {A: b}}",
			want:   "backend.envFrom may have at most 32 entries beside a config, has 33",
		},
		"Env": {
			reason: "A WebApp takes a hundred, and what wires the tier is among them.",
			spec:   "{frontend: {image: f}, backend: {image: b, env: [{name: REDIS_URL, value: own}," + strings.Repeat("{name: A, value: b},", 99) + "]}}",
			want:   "backend.env may have at most 99 entries beside the shop's own, has 100",
		},
		"Type": {reason: "A wrong type that slipped by the XRD.", spec: "{frontend: {image: f}, backend: {image: b}, cache: yes}", want: "cannot read spec: cache: must be an object, is a boolean"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := functionstest.Refused(t, functionstest.EcommercePlatform(tc.spec)); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// volumes returns n volumes as YAML.
func volumes(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("{name: v%d, mountPath: /v%d, emptyDir: {}}", i, i)
	}
	return out
}

// TestEnforcesCaps: the function checks the limits of the XRD again.
func TestEnforcesCaps(t *testing.T) {
	for _, tier := range []string{"frontend", "backend"} {
		c := simulate(t, functionstest.SmallShop)
		c.Edit("production", "environment")
		c.Edit(map[string]any{"maxReplicas": 11}, tier, "autoscaling")
		rsp := c.Run()
		if len(rsp.GetResults()) == 0 || !strings.HasPrefix(rsp.GetResults()[0].GetMessage(), tier+".autoscaling.maxReplicas ") {
			t.Errorf("Production has at most 10 pods, however they come to be: want a refusal of %s.autoscaling.maxReplicas, got %v", tier, rsp.GetResults())
		}
	}
}

func TestRefusesWhileRunning(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*functionstest.Crossplane)
		want   string
	}{
		"MySQL": {reason: "A database is not changed into another.", change: func(c *functionstest.Crossplane) { c.Edit("mysql", "database", "type") }, want: "database.version 17.2 is not supported: MySQL 9.7 is"},
		"Cron": {reason: "A mistake in a schedule stops nothing.", change: func(c *functionstest.Crossplane) {
			c.Edit([]any{map[string]any{"name": "x", "schedule": "61 * * * *"}}, "backend", "cronJobs")
		}, want: `backend.cronJobs x: schedule "61 * * * *" is no cron expression: end of range (61) above maximum (59): 61`},
		"Password": {reason: "A password that Redis cannot read.", change: func(c *functionstest.Crossplane) {
			functionstest.Set(c.Observed["cache-secret"], base64.StdEncoding.EncodeToString([]byte("two words")), "data", "password")
		}, want: "Secret store-cache: password may hold only printable ASCII characters but spaces, quotes and backslashes: change it, or delete the key to get another one"},
		"Settings": {reason: "Nonsense of the installation stops nothing.", change: func(c *functionstest.Crossplane) { c.InstallSettings("{ingress: [nginx]}") }, want: "cannot read EnvironmentConfig storeplane: data.ingress: must be an object, is a list"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.BigShop)
			if got := functionstest.RefusedWhileRunning(t, c, func() { tc.change(c) }); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
