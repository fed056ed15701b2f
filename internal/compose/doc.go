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
//  7. An error of the claim changes nothing of what runs, and is reported in
//     words.
//
// The package knows no intent, no client and no cluster.
package compose
