package backup

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// Patterns of the names that make up a place in a store, the same as in the CRDs. They are
// checked here too because no schema is enforced on the installation's settings, and because
// objects may be older than the schema. Buckets and containers have such names in all of the
// stores: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html,
// https://cloud.google.com/storage/docs/buckets#naming.
var (
	bucketName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	regionName = regexp.MustCompile(`^[A-Za-z0-9-]*$`)
	prefixName = regexp.MustCompile(`^([A-Za-z0-9!_.=@+-]+/?)*$`)
	objectName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	hostName   = regexp.MustCompile(`^[A-Za-z0-9.:_\[\]-]+$`)
)

// CheckDestination returns an error if a destination cannot be a place in a store: if a name
// leads elsewhere, or would be read as more than a name where it is written.
func CheckDestination(d backupv1.Destination) error {
	err := errors.Join(
		check("bucket", d.Bucket, bucketName, "letters, digits, dots, hyphens and underscores"),
		check("region", d.Region, regionName, "letters, digits and hyphens"),
		check("prefix", d.Prefix, prefixName, "a relative path of letters, digits and !_.=@+-"),
		checkEndpoint(d.Endpoint, d.Insecure),
	)
	if err != nil {
		return err
	}
	for folder := range strings.SplitSeq(d.Prefix, "/") {
		if folder == "." || folder == ".." {
			return fmt.Errorf("prefix %q is not allowed: a folder cannot be named %s", d.Prefix, folder)
		}
	}
	return nil
}

// CheckPlace checks the destination, the namespace and the name of an object's backups.
func CheckPlace(d backupv1.Destination, namespace, name string) error {
	const allowed = "small letters, digits, dots and hyphens"
	return errors.Join(CheckDestination(d), check("namespace", namespace, objectName, allowed), check("name", name, objectName, allowed))
}

func check(what, value string, rule *regexp.Regexp, allowed string) error {
	if rule.MatchString(value) {
		return nil
	}
	return fmt.Errorf("%s %q is not allowed: it must be %s", what, value, allowed)
}

// checkEndpoint checks that an endpoint is a URL with a host and at most a port.
func checkEndpoint(endpoint string, insecure bool) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || !hostName.MatchString(u.Host) || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("endpoint %q is no URL like https://store.example.com", endpoint)
	}
	if u.Scheme == "http" && !insecure {
		return fmt.Errorf("endpoint %q has no TLS, so that credentials and data go in plain text: use https, or set insecure", endpoint)
	}
	return nil
}
