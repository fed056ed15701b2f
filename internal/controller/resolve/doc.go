// Package resolve finds what the pods of a Backup or Restore reach: the database, the store and the
// key, by following references to Secrets, ProviderConfigs and DatabaseClusters.
//
// It reads from the API server and nothing else, and never connects to a store or a database. What
// a user has to fix is a Problem, with a message for users; anything else that fails is an error.
package resolve
