// Package plan predicts what an edit of a claim does to what runs: which objects are created,
// changed and deleted, and what that means for the users of the application: which pods restart and
// in what order, whether writes pause, what is copied, and what cannot be undone.
//
// The function composes the claim twice from the objects in the cluster: as it is, and with the
// edit. A difference between the two results is caused by the edit. A difference between the
// cluster and the first result is drift: an edit by hand, or another version of the function. What
// cannot be known is marked as unknown, and never guessed.
package plan
