package databasecluster

import (
	"errors"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/instance"
)

// maintenance returns the objects that have to change even while the claim is refused, by
// component: certificates of the cluster's own authorities are renewed before they expire, clients
// and servers get the authority that has signed them, and copies of other Secrets follow these. A
// claim may be invalid for longer than a certificate is valid.
func (d *inputs) maintenance(c *compose.Claim) (map[string]*structpb.Struct, error) {
	u := due{claim: c, objects: map[string]*structpb.Struct{}}
	if c.Observed(authority) != nil && c.Observed(certificate) != nil {
		own, err := d.ownCertificates(c)
		if err != nil {
			return nil, err
		}
		signer := own.Authority.Certificate
		u.secret(authority, map[string]string{build.KeyAuthority: signer, build.KeyAuthorityKey: own.Authority.Key})
		u.secret(certificate, map[string]string{build.KeyCertificate: own.Server.Certificate, build.KeyPrivate: own.Server.Key, build.KeyAuthority: signer})
		u.authority(signer)
	}
	if c.Observed(backupTLS) != nil {
		own, err := d.backupCertificates(c)
		if err != nil {
			return nil, err
		}
		u.secret(backupTLS, own.Values())
	}
	if c.Observed(controlTLS) != nil {
		own, err := d.controlCertificates(c)
		if err != nil {
			return nil, err
		}
		u.secret(controlTLS, own.Values())
		u.configMap(config, fileControl, own.Authority.Certificate)
	}
	// All of them request what they need at once.
	var pending error
	for _, refresh := range []func(*compose.Claim, due) error{d.refreshTLS, d.refreshStore, d.refreshSource, d.refreshPasswords} {
		if err := refresh(c, u); errors.Is(err, compose.ErrPending) {
			pending = err
		}
		// Any other error is one of the claim or of a Secret: what was copied before stays.
	}
	return u.objects, pending
}

// Names under which maintenance requests the Secrets that are in use, which a claim that is
// refused may no longer name.
const (
	tlsInUse   = "tls-in-use"
	storeInUse = "backup-store-in-use"
)

// refreshTLS distributes the authority of the certificate that the user has
// brought and the servers mount.
func (d *inputs) refreshTLS(c *compose.Claim, u due) error {
	name := mountedTLS(c.Observed(d.server))
	if name == "" || name == d.Name(certificate) {
		return nil
	}
	t, err := broughtTLS(c, tlsInUse, name)
	if err != nil {
		return err
	}
	u.authority(t.authority.Certificate)
	return nil
}

// mountedTLS returns the name of the Secret from which the servers mount their certificate, or "".
func mountedTLS(set *structpb.Struct) string {
	at := set
	for _, field := range []string{"spec", "template", "spec"} {
		at = at.GetFields()[field].GetStructValue()
	}
	for _, v := range at.GetFields()["volumes"].GetListValue().GetValues() {
		if volume := v.GetStructValue().GetFields(); volume["name"].GetStringValue() == engine.TLSVolume {
			return volume["secret"].GetStructValue().GetFields()["secretName"].GetStringValue()
		}
	}
	return ""
}

// refreshStore copies the credentials of the installation's store, as long as
// backups are stored there.
func (d *inputs) refreshStore(c *compose.Claim, u due) error {
	s := d.settings.Backup
	if c.Observed(backupStore) == nil || s == nil || s.SecretRef == nil {
		return nil
	}
	used, err := d.usedDestination(c)
	if err != nil || used.Type == "" {
		return err
	}
	now := destinationOf(s.Destination())
	used.SecretRef, now.SecretRef = nil, nil
	if used != now {
		return nil
	}
	name, namespace := s.SecretRef.Secret(d.Namespace)
	store, err := requireSecretOf(c, storeInUse, name, namespace)
	if err == nil {
		u.secret(backupStore, storeValues(store))
	}
	return err
}

// usedDestination returns where backups are stored now, or an empty destination.
func (d *inputs) usedDestination(c *compose.Claim) (backupv1.Destination, error) {
	if d.traits.Archives {
		if d.live == nil || d.live.desired.Backup == nil {
			return backupv1.Destination{}, nil
		}
		return d.live.desired.Backup.Destination, nil
	}
	was, err := observedBackup(c)
	if err != nil || was == nil {
		return backupv1.Destination{}, err
	}
	return was.Spec.ForProvider.Destination, nil
}

// refreshSource copies the credentials of the backups that are being restored, if
// these are still the same.
func (d *inputs) refreshSource(c *compose.Claim, u due) error {
	have, ok := compose.SecretValue(c.Observed(source), instance.RestoreFile)
	if !ok || d.live == nil {
		return nil
	}
	o, err := d.origin(c)
	if err != nil || o == nil {
		return err
	}
	if o.values[instance.RestoreFile] == have {
		u.secret(source, o.values)
	}
	return nil
}

// refreshPasswords copies the passwords that the claim's users bring, if they come from the Secrets
// from which those in use were copied.
func (d *inputs) refreshPasswords(c *compose.Claim, u due) error {
	var pending error
	for _, user := range d.spec.Users {
		component := userComponent(user.Name)
		old, ok := compose.SecretValue(c.Observed(component), keyPassword)
		if user.PasswordSecretRef == nil || !ok || passwordFrom(c.Observed(component)) != user.PasswordSecretRef.Name {
			continue
		}
		password, err := brought(c, user)
		if errors.Is(err, compose.ErrPending) {
			pending = err
		}
		if err != nil {
			continue
		}
		u.secret(component, engine.WithPassword(secretValues(c.Observed(component)), string(user.Name), old, password))
		u.secret(credentials, map[string]string{instance.PasswordKey(string(user.Name)): password})
	}
	return pending
}

// passwordFrom returns the name of the Secret from which the password in a
// user's Secret was copied.
func passwordFrom(secret *structpb.Struct) string {
	metadata := secret.GetFields()["metadata"].GetStructValue()
	return metadata.GetFields()["annotations"].GetStructValue().GetFields()[passwordFromAnnotation].GetStringValue()
}

// due collects objects that exist and have to change, by component.
type due struct {
	claim   *compose.Claim
	objects map[string]*structpb.Struct
}

// authority sets the authority by which clients and servers verify the servers.
func (u due) authority(certificate string) {
	u.configMap(config, instance.FilePeers, peersOf(certificate, datum(u.claim.Observed(config), instance.FilePeers)))
	for _, component := range u.claim.ObservedComponents("") {
		if component == connection || component == dumper || strings.HasPrefix(component, userComponent("")) {
			u.secret(component, map[string]string{build.KeyAuthority: certificate})
		}
	}
}

// secret sets those values of a Secret that differ.
func (u due) secret(component string, values map[string]string) {
	for k, v := range values {
		if have, _ := compose.SecretValue(u.claim.Observed(component), k); have != v {
			u.set(component, k, compose.SecretData(v))
		}
	}
}

// configMap sets a value of a ConfigMap if it differs.
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
