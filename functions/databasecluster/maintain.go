package databasecluster

import (
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/internal/compose"
)

// maintenance is what goes on while the claim is refused: certificates of the
// cluster's own authorities are renewed before they expire, and whoever verifies
// them gets the authority that has signed them. A mistake in a claim may stand
// for longer than a certificate.
func (d *cluster) maintenance(c *compose.Claim) (map[string]*structpb.Struct, error) {
	due := due{claim: c, objects: map[string]*structpb.Struct{}}
	if c.Observed(authority) != nil && c.Observed(certificate) != nil {
		if err := d.renewServer(c, &d.tls); err != nil {
			return nil, err
		}
		signer := d.tls.authority.Certificate
		due.secret(authority, map[string]string{keyAuthority: signer, keyAuthorityKy: d.tls.authority.Key})
		due.secret(certificate, map[string]string{keyCertificate: d.tls.server.Certificate, keyPrivate: d.tls.server.Key, keyAuthority: signer})
		due.configMap(config, filePeers, peersOf(signer, datum(c.Observed(config), filePeers)))
		for _, component := range c.ObservedComponents("") {
			if component == connection || strings.HasPrefix(component, userComponent("")) {
				due.secret(component, map[string]string{keyAuthority: signer})
			}
		}
	}
	if c.Observed(backupTLS) != nil {
		if err := d.renewBackup(c, &d.tls); err != nil {
			return nil, err
		}
		due.secret(backupTLS, map[string]string{
			keyAuthority: d.tls.backupAuthority.Certificate, keyAuthorityKy: d.tls.backupAuthority.Key,
			keyCertificate: d.tls.backup.Certificate, keyPrivate: d.tls.backup.Key,
		})
	}
	return due.objects, nil
}

// due collects objects that exist and have to change.
type due struct {
	claim   *compose.Claim
	objects map[string]*structpb.Struct
}

// secret that has to hold these values.
func (u due) secret(component string, values map[string]string) {
	for k, v := range values {
		if have, _ := compose.SecretValue(u.claim.Observed(component), k); have != v {
			u.set(component, k, compose.SecretData(v))
		}
	}
}

// configMap that has to hold this value.
func (u due) configMap(component, key, value string) {
	if obj := u.claim.Observed(component); obj != nil && datum(obj, key) != value {
		u.set(component, key, value)
	}
}

func (u due) set(component, key, value string) {
	obj := u.objects[component]
	if obj == nil {
		if obj = u.claim.Kept(component); obj == nil {
			return
		}
		u.objects[component] = obj
	}
	data := obj.GetFields()["data"].GetStructValue()
	if data == nil {
		data = &structpb.Struct{Fields: map[string]*structpb.Value{}}
		obj.Fields["data"] = structpb.NewStructValue(data)
	}
	data.Fields[key] = structpb.NewStringValue(value)
}
