package functionstest

// DatabaseCluster returns a DatabaseCluster orders with this spec.
func DatabaseCluster(spec string) string {
	return "apiVersion: apps.example.com/v1\nkind: DatabaseCluster\nmetadata: {name: orders, namespace: team}\nspec: " + spec
}

// The specs of a DatabaseCluster.
const (
	// OneServer is the smallest spec.
	OneServer = "{size: 1, version: '17'}"

	// Production is a usual spec.
	Production = "{size: 3, version: '17.2', environment: production, storageSize: 20Gi}"

	// BigCluster uses every field that needs no object outside of the claim.
	BigCluster = `
  size: 5
  version: 17.2.0
  engine: postgresql
  environment: production
  storageSize: 20Gi
  storageClassName: fast
  resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {memory: 2Gi}}
  parameters: {work_mem: 16MB, log_line_prefix: "%m 'x' \"y\" "}
  synchronous: true
  synchronousMode: strict
  tls: {required: false}
  databases: [{name: shop, owner: order_writer, extensions: [pg_trgm]}, {name: reports}]
  users: [{name: order_writer}, {name: reader}]
  backup: {enabled: false}
  monitoring: {enabled: true}
  deletionProtection: true
  clients: {app: backend}
`
)

// EcommercePlatform returns an EcommercePlatform store with this spec.
func EcommercePlatform(spec string) string {
	return "apiVersion: platform.example.com/v1\nkind: EcommercePlatform\nmetadata: {name: store, namespace: team}\nspec: " + spec
}

// The specs of an EcommercePlatform.
const (
	// SmallShop is the smallest spec.
	SmallShop = "{frontend: {image: front:1}, backend: {image: back:1}}"

	// BigShop uses most fields.
	BigShop = `
  environment: production
  frontend:
    image: front:1
    replicas: 3
    probe: {path: /healthz}
    autoscaling: {minReplicas: 3, maxReplicas: 9}
  backend:
    image: back:1
    port: 9000
    env: [{name: LOG, value: debug}]
    migration: {command: [/back, migrate]}
    cronJobs: [{name: report, schedule: "0 4 * * *", timeZone: Europe/Paris, args: [report]}]
  database: {version: "17.2", storage: 20Gi, size: 2}
  cache: {memory: 128Mi}
  ingress: {host: store.example.com, tls: {secretName: cert}}
  config: {CURRENCY: EUR}
`
)

// WebApp returns a WebApp hello with this spec.
func WebApp(spec string) string {
	return "apiVersion: apps.example.com/v1\nkind: WebApp\nmetadata: {name: hello, namespace: team}\nspec: " + spec
}

// SmallApp is the smallest WebApp.
const SmallApp = `
apiVersion: apps.example.com/v1
kind: WebApp
metadata: {name: hello, namespace: team}
spec:
  image: registry.example.com/hello:1
`

// MigratedApp is a WebApp with a migration.
const MigratedApp = `
apiVersion: apps.example.com/v1
kind: WebApp
metadata: {name: hello, namespace: team}
spec:
  image: registry.example.com/hello:1
  replicas: 2
  config: {GREETING: hi}
  migration: {command: [/hello, migrate]}
`

// BigApp is a WebApp in production with most fields.
const BigApp = `
apiVersion: apps.example.com/v1
kind: WebApp
metadata: {name: hello, namespace: team}
spec:
  image: registry.example.com/hello:1
  environment: production
  port: 9000
  config: {GREETING: hi}
  migration: {args: [migrate]}
  autoscaling: {minReplicas: 2, maxReplicas: 5, targetCPUUtilization: 70}
  probe: {path: /readyz}
  ingress: {host: hello.example.com, tls: {issuer: letsencrypt}}
  cronJobs:
  - {name: clean, schedule: "0 3 * * *", timeZone: Europe/Paris, args: [clean]}
  - {name: report, schedule: "@weekly", command: [/hello, report]}
`

// FullApp is a WebApp with the fields that BigApp does not use.
const FullApp = `
apiVersion: apps.example.com/v1
kind: WebApp
metadata: {name: hello, namespace: team}
spec:
  image: registry.example.com/hello:1.2.3@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  environment: staging
  env: [{name: MODE, value: full}, {name: OTHER, value: a}]
  probe: {path: /readyz, port: 9000, liveness: {path: /livez}, startup: {seconds: 60}}
  terminationGracePeriodSeconds: 90
  autoscaling:
    maxReplicas: 5
    targetMemoryUtilization: 75
    metrics:
    - {type: Pods, name: requests_per_second, averageValue: "100"}
    - {type: External, name: queue_length, averageValue: 500m, selector: {matchLabels: {queue: mail}}}
  volumes:
  - {name: scratch, mountPath: /var/cache/hello, emptyDir: {sizeLimit: 1Gi}}
  - {name: shared, mountPath: /data, readOnly: true, persistentVolumeClaim: {claimName: shared}}
  initContainers:
  - {name: warm-up, args: [warm], env: [{name: MODE, value: warm}]}
  sidecars:
  - {name: proxy, image: registry.example.com/proxy:1, port: 6432}
  - {name: logs, image: registry.example.com/logs:1, resources: {requests: {cpu: 1m, memory: 8Mi}, limits: {memory: 16Mi}}}
  imagePullSecrets: [{name: pull}]
  metrics: {port: 9090}
  nodeSelector: {disk: fast}
  tolerations: [{key: spot, operator: Exists}]
  priorityClassName: high
  migration: {args: [migrate], backoffLimit: 1, activeDeadlineSeconds: 60}
  cronJobs:
  - name: clean
    schedule: "@daily"
    args: [clean]
    concurrencyPolicy: Replace
    suspend: true
    startingDeadlineSeconds: 20
    successfulJobsHistoryLimit: 0
    failedJobsHistoryLimit: 9
    backoffLimit: 0
    activeDeadlineSeconds: 30
    resources: {requests: {cpu: 1m, memory: 8Mi}, limits: {memory: 16Mi}}
  workers:
  - {name: mailer, args: [mail], replicas: 2, probe: {command: [/hello, alive]}}
  - {name: mailer-x, args: [x], autoscaling: {minReplicas: 2, maxReplicas: 4}, resources: {requests: {cpu: 1m, memory: 8Mi}, limits: {memory: 16Mi}}}
`
