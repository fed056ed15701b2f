package ecommerceplatform

import (
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
)

// maintenance returns the objects that have to change even while the claim is refused, by
// component: the certificate of the cache is renewed before it expires, and Redis is replaced with
// it. A claim may be invalid for longer than a certificate is valid.
func (s *shop) maintenance(c *compose.Claim) (map[string]*structpb.Struct, error) {
	due := map[string]*structpb.Struct{}
	if c.Observed(cacheTLS) == nil || c.Observed(cacheSecret) == nil {
		return due, nil
	}
	own, err := s.certifyCache(c)
	if err != nil {
		return nil, err
	}
	update := func(component, key, value string, path ...string) {
		object := due[component]
		if object == nil {
			object = c.Kept(component)
		}
		if fields := fieldsAt(object, path...); fields != nil && fields[key].GetStringValue() != value {
			fields[key], due[component] = structpb.NewStringValue(value), object
		}
	}
	for key, value := range own.Values() {
		update(cacheTLS, key, compose.SecretData(value), "data")
	}
	update(cacheSecret, build.KeyAuthority, compose.SecretData(own.Authority.Certificate), "data")
	salt, _ := compose.SecretValue(c.Observed(cacheSecret), keySalt)
	update(cacheServer, certificateVersionAnnotation, certificateVersion(c, salt, own.Server.Certificate), "spec", "template", "metadata", "annotations")
	return due, nil
}

// fieldsAt returns the fields at a path of an object, or nil.
func fieldsAt(object *structpb.Struct, path ...string) map[string]*structpb.Value {
	for _, step := range path {
		object = object.GetFields()[step].GetStructValue()
	}
	return object.GetFields()
}
