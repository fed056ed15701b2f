package databasecluster

import (
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
)

// The user and database that every cluster has.
const (
	appUser     = "app"
	appDatabase = "app"
)

// Keys of the credentials Secret.
const (
	keyPassword    = "password"
	keySuperuser   = "superuser-password"
	keyReplication = "replication-password"
	keyRewind      = "rewind-password"
)

// secrets are drawn once and read back ever after.
type secrets struct{ app, superuser, replication, rewind string }

func drawSecrets(c *compose.Claim, l *live) (secrets, error) {
	// Once there has been a primary the volumes hold the passwords, and new
	// ones would lock everybody out.
	if l.primary != "" && c.Observed(credentials) == nil {
		return secrets{}, compose.Invalidf("Secret %s-%s is gone, and the volumes hold the passwords that were in it: put it back", c.Name(), credentials)
	}
	s := secrets{}
	for _, k := range []struct {
		key  string
		into *string
	}{{keyPassword, &s.app}, {keySuperuser, &s.superuser}, {keyReplication, &s.replication}, {keyRewind, &s.rewind}} {
		v, err := c.Secret(credentials, k.key, compose.Random.Password)
		if err != nil {
			return secrets{}, err
		}
		*k.into = v
	}
	return s, nil
}

// credentials is for the servers alone.
func (d *cluster) credentials() *corev1.Secret {
	return build.Secret(d.Meta(credentials, appName), map[string]string{
		keyPassword:    d.secrets.app,
		keySuperuser:   d.secrets.superuser,
		keyReplication: d.secrets.replication,
		keyRewind:      d.secrets.rewind,
	})
}

// connection is for applications. Its keys are those that users of
// CloudNativePG know.
func (d *cluster) connection() *corev1.Secret {
	host := serviceHost(d.Claim, primary, d.Namespace)
	values := map[string]string{
		"username": appUser,
		"password": d.secrets.app,
		"host":     host,
		"port":     strconv.Itoa(port),
		"dbname":   appDatabase,
		"uri":      "postgresql://" + appUser + ":" + d.secrets.app + "@" + net.JoinHostPort(host, strconv.Itoa(port)) + "/" + appDatabase + "?target_session_attrs=read-write",
		"jdbc-uri": fmt.Sprintf("jdbc:postgresql://%s:%d/%s?user=%s&password=%s&targetServerType=primary", host, port, appDatabase, appUser, d.secrets.app),
	}
	if d.spec.Size > 1 {
		values["ro-host"] = serviceHost(d.Claim, replica, d.Namespace)
	}
	return build.Secret(d.Meta(connection, appName), values)
}

func serviceHost(claim, component, namespace string) string {
	return fmt.Sprintf("%s-%s.%s.svc", claim, component, namespace)
}

func hostPort(claim, component, namespace string) string {
	return fmt.Sprintf("%s:%d", serviceHost(claim, component, namespace), port)
}
