// Package apis embeds the definitions of all claims and generates what is made
// from their Go types. The types themselves are in one folder a group and
// version below it.
package apis

// The first line writes the deep copies, the second the definitions of claims,
// the third those of managed resources, the fourth the tables of fields and of
// reasons in the documentation. All depend on the types, so that a second run changes nothing.

//go:generate go tool -modfile=../hack/tools/go.mod controller-gen object paths=./...
//go:generate go run ../hack/xrdgen ./apps/... ./platform/...
//go:generate go tool -modfile=../hack/tools/go.mod controller-gen crd paths=./backup/... paths=./config/... paths=./storeplane/... output:crd:dir=../package/provider/crds
//go:generate go run ../hack/specdoc . ../package/provider/crds ../docs
