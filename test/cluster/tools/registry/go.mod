module github.com/storeplane/storeplane/test/cluster/tools/registry

go 1.26.0

require github.com/google/go-containerregistry v0.21.0
