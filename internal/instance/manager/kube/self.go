package kube

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Self returns this program's own pod. If another pod has its name by now, such as a
// StatefulSet's next one, this program's own is gone, and Self returns a NotFound error.
func (c *Client) Self(ctx context.Context, name string) (*corev1.Pod, error) {
	pod, err := c.Pod(ctx, name)
	if err != nil {
		return nil, err
	}
	if c.self != "" && pod.UID != c.self {
		return nil, fmt.Errorf("cannot get pod %s with uid %s: %w", name, c.self, apierrors.NewNotFound(corev1.Resource("pods"), name))
	}
	return pod, nil
}

// UID returns the UID of this program's own pod, or "" if it is not known.
func (c *Client) UID() string { return string(c.self) }

// selfOf returns the UID of the pod that the config's token was issued for, or "" if the token
// does not contain it. The API server writes it into the tokens that it projects into pods
// (https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#bound-service-account-tokens).
func selfOf(config *rest.Config) types.UID {
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		b, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return ""
		}
		token = string(b)
	}
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return ""
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	claims := struct {
		Kubernetes struct {
			Pod struct {
				UID types.UID `json:"uid"`
			} `json:"pod"`
		} `json:"kubernetes.io"`
	}{}
	if json.Unmarshal(b, &claims) != nil {
		return ""
	}
	return claims.Kubernetes.Pod.UID
}
