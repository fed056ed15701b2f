package images

// DefaultRegistry is the registry of Storeplane's own images if neither a program's image nor a
// flag sets one. Nothing can be pulled from it.
const DefaultRegistry = "registry.example.com/storeplane"

// Flags are those of a program that names Storeplane's own images. The programs' images set both by
// their environment.
type Flags struct {
	ImageRegistry string `env:"STOREPLANE_IMAGE_REGISTRY" help:"Registry and path of Storeplane's own images. Default: registry.example.com/storeplane."`
	Images        string `env:"STOREPLANE_IMAGES"         help:"File images.json of a release, with the digests of its images. Without it they are named by their tags." placeholder:"FILE"`
}

// Set returns the images that the flags name.
func (f *Flags) Set() (Set, error) {
	s := Set{Registry: f.ImageRegistry}
	if s.Registry == "" {
		s.Registry = DefaultRegistry
	}
	r, err := Read(f.Images)
	s.Digests, s.Version = r.Digests, r.Version
	return s, err
}
