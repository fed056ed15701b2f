// Package compose is the kernel that every intent shares. An intent turns a claim into components.
// This package alone decides which of them are applied now, whether the claim is ready, and what
// its status reports:
//
//  1. A component is applied once all that it comes after is healthy, or once it has been
//     observed: an object that exists is never withheld again.
//  2. The claim is ready when every declared component is healthy, withheld ones included. The
//     message names what the claim waits for.
//  3. Health is determined by generation and kind (package health). An object that does not yet
//     carry its current declaration is not healthy.
//  4. An object that is observed but no longer declared is deleted, unless it holds data: then
//     it is deleted only when the intent releases it, and until then a condition reports that
//     it stays.
//  5. Objects are named <claim>-<component>.
//  6. The same input gives the same output. A random value is read back from the observed
//     Secret in all later passes.
//  7. Nothing is applied for the first time over an object that exists and does not belong to
//     the claim, unless that object allows it: the claim is refused.
//  8. An observed object is not removed because its kind was not found.
//  9. An error of the claim changes nothing of what runs except what must continue, like the
//     renewal of certificates, and is reported with a message.
//
// The package depends on no intent and uses no client of a cluster.
package compose
