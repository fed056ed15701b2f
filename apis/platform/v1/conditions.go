package v1

// Types of the conditions of an EcommercePlatform, besides those that appsv1 has.
const (
	TypeDatabaseReady = "DatabaseReady"
	TypeCacheReady    = "CacheReady"
	TypeBackendReady  = "BackendReady"
	TypeFrontendReady = "FrontendReady"
	TypeIngressReady  = "IngressReady"
)
