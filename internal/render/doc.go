// Package render prints what a claim becomes, offline: either what Crossplane
// makes of it in one go, by the real `crossplane composition render` with the
// real function, or everything that it will ever make, by package converge; or
// what package policy says of it.
//
// What a claim that its definition or the function refuses becomes is not
// printed. The package knows no intent: the function is handed in.
package render
