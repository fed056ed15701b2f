package converge

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// normalize changes an object as an API server does when it stores it, as far as a function may
// notice.
func normalize(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u.GetAPIVersion() == "v1" && u.GetKind() == "Secret" {
		normalizeSecret(u)
	}
	return u
}

// normalizeSecret moves stringData, which can only be written, into data.
func normalizeSecret(u *unstructured.Unstructured) {
	plain, ok, err := unstructured.NestedStringMap(u.Object, "stringData")
	if !ok || err != nil {
		return
	}
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	if err != nil {
		return
	}
	if data == nil {
		data = make(map[string]string, len(plain))
	}
	for k, v := range plain {
		data[k] = base64.StdEncoding.EncodeToString([]byte(v))
	}
	delete(u.Object, "stringData")
	_ = unstructured.SetNestedStringMap(u.Object, data, "data")
}
