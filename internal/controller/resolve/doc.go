// Package resolve finds what the pods of a Backup or Restore reach: the database,
// the store and the key, by the Secrets, ProviderConfigs and DatabaseClusters
// that are referred to.
//
// It reads from the API server and nothing else, and never speaks to a store or a
// database. What is missing is a Problem, in words for people; anything else that
// goes wrong is an error.
package resolve
