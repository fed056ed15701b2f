//go:build e2e

package postgresql

import (
	"context"
	"strings"
)

// switchoverScript asks Patroni to hand over, as patronictl does: in the pod of
// the primary, with the password that is there. It says what Patroni answers.
const switchoverScript = `import base64, json, sys, urllib.error, urllib.request
leader, candidate = sys.stdin.read().split()
with open("/etc/storeplane/credentials/restapi-password") as f:
    password = f.read().strip()
request = urllib.request.Request("http://127.0.0.1:8008/switchover", method="POST",
    data=json.dumps({"leader": leader, "candidate": candidate}).encode(),
    headers={"Content-Type": "application/json", "Authorization": "Basic " + base64.b64encode(b"patroni:" + password.encode()).decode()})
try:
    print(urllib.request.urlopen(request, timeout=60).read().decode())
except urllib.error.HTTPError as e:
    sys.exit(e.read().decode())
`

// switchover to a server. Patroni refuses while the candidate does not count yet
// for writes, so it is asked until it has done it.
func (d *database) switchover(ctx context.Context, candidate string) error {
	answer := ""
	return d.world.Await(ctx, soon, candidate+" to be primary", func() (bool, string) {
		p := d.primary()
		switch {
		case p == nil:
			return false, "not exactly one pod is"
		case p.GetName() == candidate:
			return true, ""
		}
		_, err := cluster.Exec(ctx, d.namespace, p.GetName(), container, strings.NewReader(p.GetName()+" "+candidate), "python3", "-c", switchoverScript)
		if err != nil {
			answer = err.Error()
		}
		return false, "it is " + p.GetName() + "; Patroni's answer: " + answer
	})
}
