package main

import (
	"bytes"
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
	"github.com/package-url/packageurl-go"
)

// bom returns the file of an image, by its repository, its name in the release, its digest, and the
// release's version. It is the same for the same image: it contains no time, which would change it.
func (c *contents) bom(repository, name, digest, version string) ([]byte, error) {
	components := c.components(version)
	b := cdx.NewBOM()
	b.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(repository+"@"+digest)).URN()
	purl := packageurl.NewPackageURL(packageurl.TypeOCI, "", path.Base(repository), digest, packageurl.Qualifiers{{Key: "repository_url", Value: repository}}, "")
	b.Metadata = &cdx.Metadata{Component: &cdx.Component{
		BOMRef: purl.ToString(), Type: cdx.ComponentTypeContainer, Name: name, Version: digest, PackageURL: purl.ToString(),
	}}
	b.Components = &components
	var out bytes.Buffer
	err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(b, cdx.SpecVersion1_6)
	return out.Bytes(), err
}

// ownModule is built from a source tree, so that its build information has no version of the
// release.
const ownModule = "github.com/storeplane/storeplane"

// components returns the components, sorted by package URL. Those of ownModule get the version.
func (c *contents) components(version string) []cdx.Component {
	out := []cdx.Component{}
	distribution, _, _ := strings.Cut(c.distribution, "-")
	for _, p := range c.packages {
		q := packageurl.Qualifiers{{Key: "arch", Value: p.architecture}, {Key: "distro", Value: c.distribution}}
		if p.source != "" {
			// Security advisories name source packages.
			q = append(q, packageurl.Qualifier{Key: "upstream", Value: p.source})
		}
		out = append(out, component(packageurl.NewPackageURL(packageurl.TypeDebian, distribution, p.name, p.version, q, "")))
	}
	for m := range maps.Keys(c.modules) {
		if m.path == ownModule {
			m.version = version
		}
		dir, name := path.Split(m.path)
		purl := packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(dir, "/"), name, m.version, nil, "")
		of := component(purl)
		of.Name = m.path
		out = append(out, of)
	}
	slices.SortFunc(out, func(a, b cdx.Component) int { return cmp.Compare(a.PackageURL, b.PackageURL) })
	return out
}

func component(purl *packageurl.PackageURL) cdx.Component {
	text := purl.ToString()
	return cdx.Component{BOMRef: text, Type: cdx.ComponentTypeLibrary, Name: purl.Name, Version: purl.Version, PackageURL: text}
}
