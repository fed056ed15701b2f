// Package v1 holds the intents that are made of other intents:
// EcommercePlatform, a shop of a frontend, a backend, a database and a cache.
//
// It imports only the smaller intents' types of apis/apps/v1.
//
// +groupName=platform.example.com
// +versionName=v1
package v1
