// Package plan foresees what an edit of a claim does to what runs: which objects are
// created, changed and deleted, and what that means for whoever runs the application:
// which pods restart and in what order, whether writes pause, what is copied, what cannot
// be undone.
//
// The claim is composed by the function itself, twice, from what the cluster has: as it is,
// and with the edit. What is different between the two is the edit's; what is different
// between the cluster and the first is there already: an edit by hand, or another version
// of the function. What cannot be known is marked as unknown, and never guessed.
package plan
