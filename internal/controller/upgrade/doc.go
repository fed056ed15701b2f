// Package upgrade has the claims of a cluster upgraded in the waves of the installation's settings:
// it annotates those whose wave has begun. Package internal/waves decides which.
package upgrade
