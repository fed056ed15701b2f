// Package compose is the kernel that every intent shares. An intent turns a
// claim into components; this package alone decides what of them is applied
// now, whether the claim is ready, and what it says about itself:
//
//  1. A component is applied once all that it comes after is healthy, or once
//     it has been observed: what exists is never withheld again.
//  2. The claim is ready when every declared component is healthy, withheld
//     ones included. The message names what is waited for.
//  3. Health is judged by generation and kind (package health). An object that
//     does not yet carry what is declared now is not healthy.
//  4. What is observed but no longer declared goes, unless it holds data: that
//     leaves only when the intent releases it, else a condition says that it
//     stays.
//  5. Objects are named <claim>-<component>.
//  6. The same input gives the same output. What is drawn at random is read
//     back from the observed Secret ever after.
//  7. Nothing is applied for the first time over an object that exists and is
//     not the claim's, unless that object allows it: the claim is refused.
//  8. What is observed is not withdrawn because its kind was not found.
//  9. An error of the claim changes nothing of what runs but what must go on,
//     like the renewal of certificates, and is reported with a message.
//
// The package knows no intent, no client and no cluster.
package compose
