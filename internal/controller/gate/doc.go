// Package gate reports which kinds the API server serves, and holds controllers back until it
// serves theirs.
package gate
