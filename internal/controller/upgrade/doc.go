// Package upgrade upgrades the claims of a cluster in the waves of the installation's settings: it
// annotates the claims whose wave has begun. Package internal/waves decides which.
package upgrade
