// Package exchange is a server's side of what the function and the instance managers exchange: it
// watches what is desired and what was reported, writes reports and events, and logs failures once.
// It is the same for every engine.
package exchange
