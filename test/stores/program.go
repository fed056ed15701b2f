package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// program is a program that tests need.
type program struct {
	// module is the folder of the Go module or npm package that builds it, relative to
	// test/stores.
	module string

	// pkg is the Go package in the module, or "" for what npm installs.
	pkg string

	// path is the path of the program in its cache folder.
	path string

	// versioned is the module that must be built from a copy, because its program only runs if a
	// file beside its sources contains its version.
	versioned string
}

const (
	// ourModule pins the versions of the stores.
	ourModule = "."
	// imageModule pins the versions of programs that the image backup:mongodb contains too.
	imageModule = "../../package/images/backup/tools"
	// traefikModule pins traefik and its many dependencies.
	traefikModule = "traefik"
	// azuriteModule pins Azurite and its dependencies.
	azuriteModule = "azurite"
)

var programs = map[string]program{
	"versitygw":       {module: ourModule, pkg: "github.com/versity/versitygw/cmd/versitygw", path: "versitygw"},
	"fake-gcs-server": {module: ourModule, pkg: "github.com/fsouza/fake-gcs-server", path: "fake-gcs-server"},
	"traefik":         {module: traefikModule, pkg: "github.com/traefik/traefik/v3/cmd/traefik", path: "traefik"},
	"data":            {module: ourModule, pkg: "./data", path: "data"},
	"azurite":         {module: azuriteModule, path: "node_modules/.bin/azurite-blob"},
	"ferretdb":        {module: imageModule, pkg: "github.com/FerretDB/FerretDB/cmd/ferretdb", path: "ferretdb", versioned: "github.com/FerretDB/FerretDB"},
	"mongodump":       {module: imageModule, pkg: "github.com/mongodb/mongo-tools/mongodump/main", path: "mongodump"},
	"mongorestore":    {module: imageModule, pkg: "github.com/mongodb/mongo-tools/mongorestore/main", path: "mongorestore"},
}

func find(name string) (program, error) {
	p, ok := programs[name]
	if !ok {
		known := slices.Sorted(maps.Keys(programs))
		return program{}, fmt.Errorf("cannot build %s: there is no such program, there are %s", name, strings.Join(known, ", "))
	}
	return p, nil
}

// pins returns the patterns of the files that determine a program's build.
func (p program) pins() []string {
	switch {
	case p.pkg == "":
		return []string{"package.json", "package-lock.json"}
	case strings.HasPrefix(p.pkg, "./"):
		return []string{"go.mod", "go.sum", p.pkg + "/*.go"}
	}
	return []string{"go.mod", "go.sum"}
}
