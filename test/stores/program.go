package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// program that tests need.
type program struct {
	// module that builds it, seen from here.
	module string

	// pkg of the module, or "" for what npm installs.
	pkg string

	// path of the program in the folder that it is kept in.
	path string

	// versioned is the module that has to be built by itself, since its program
	// will not run unless a file beside its sources says which version it is.
	versioned string
}

const (
	// ourModule pins the stores.
	ourModule = "."
	// imageModule pins what the image backup:mongodb holds too.
	imageModule = "../../package/images/backup/tools"
	// traefikModule pins traefik and all that it needs, which is a lot.
	traefikModule = "traefik"
	// azuriteModule pins Azurite and all that it needs.
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

// pins are the files that say what a program is made of, as patterns.
func (p program) pins() []string {
	switch {
	case p.pkg == "":
		return []string{"package.json", "package-lock.json"}
	case strings.HasPrefix(p.pkg, "./"):
		return []string{"go.mod", "go.sum", p.pkg + "/*.go"}
	}
	return []string{"go.mod", "go.sum"}
}
