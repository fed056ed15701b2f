package engine

import (
	"net/url"
	"strings"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// WithPassword returns those of a Connection's values that change with the password. URIs have it beside
// the user, and the JDBC URL as parameter password, which is not the last one.
func WithPassword(values map[string]string, user, was, password string) map[string]string {
	replace := strings.NewReplacer(
		"//"+url.UserPassword(user, was).String()+"@", "//"+url.UserPassword(user, password).String()+"@",
		"&password="+url.QueryEscape(was)+"&", "&password="+url.QueryEscape(password)+"&",
	)
	out := map[string]string{appsv1.ConnectionPassword: password}
	for _, key := range []string{appsv1.ConnectionURI, appsv1.ConnectionJDBC, appsv1.ConnectionMultiHost, appsv1.ConnectionVerified} {
		if value, ok := values[key]; ok {
			out[key] = replace.Replace(value)
		}
	}
	return out
}
