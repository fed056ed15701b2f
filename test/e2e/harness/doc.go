// Package harness is what suites of end-to-end tests share: a cluster watched
// from the outside, requests made from the inside.
//
// It observes and acts the way people and programs do, by the API server and
// over HTTP. It knows neither functions nor how they are made. Nothing in it
// sleeps: it waits for events of the cluster, always with a bound, and says what
// it waited for.
package harness
