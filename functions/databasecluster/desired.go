package databasecluster

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/instance"
)

// desiredJSON returns what the instance managers read, as JSON.
func (d *cluster) desiredJSON() (string, error) {
	protocol, _ := instance.Negotiate(d.live.members, instance.OldestProtocol, instance.Protocol)
	out := instance.Desired{
		Protocol:    protocol,
		Claim:       d.Claim,
		Size:        d.spec.Size,
		Hibernated:  d.spec.Hibernated,
		Synchronous: d.synchronous(),
		Storage:     d.storage,
		Databases:   []instance.Database{{Name: engine.AppDatabase, Owner: engine.AppUser}},
		Users:       []string{engine.AppUser},
		Parameters:  d.spec.Parameters,
		Restored:    d.spec.RestoreFrom != nil,
		Restoring:   d.restores(),
		LeadWith:    d.leadWith,
		Backup:      d.desiredBackup(),
	}
	if d.backup.own {
		out.Repository = &instance.Volume{Claim: d.repositoryClaim(), Storage: d.backup.storage}
	}
	for _, db := range d.spec.Databases {
		out.Databases = append(out.Databases, instance.Database{Name: string(db.Name), Owner: engine.Owner(db), Extensions: db.Extensions})
	}
	for _, u := range d.spec.Users {
		out.Users = append(out.Users, string(u.Name))
	}
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return "", fmt.Errorf("cannot write what the instance managers shall do: %w", err)
	}
	return string(b) + "\n", nil
}

// fileControl is the key, in the ConfigMap, of the authority of the servers' own APIs, for clients
// that read their metrics.
const fileControl = "control.crt"

// configMap returns the ConfigMap with the configuration that the servers start with, and with what
// the instance managers reconcile.
func (d *cluster) configMap() *corev1.ConfigMap {
	values := map[string]string{
		instance.FilePeers:  d.tls.peers,
		fileControl:         d.tls.control.Authority.Certificate,
		instance.DesiredKey: d.desired,
	}
	maps.Copy(values, d.configuration.Files)
	maps.Copy(values, d.files)
	return build.ConfigMap(d.Meta(d.server, d.server), values)
}

// instances returns the ConfigMap in which the instance managers report. It is composed so that the
// function observes it. Its content belongs to the instance managers alone.
func (d *cluster) instances() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: d.Named(instance.StatusName(d.Name(d.server)), d.server, d.server),
	}
}
