//go:build e2e

package postgresql

import (
	"context"
	"strings"
)

// switchoverScript asks Patroni to hand over, as patronictl does: in the pod of
// the primary, with the password that is there.
const switchoverScript = `import base64, json, sys, urllib.request
leader, candidate = sys.stdin.read().split()
with open("/etc/storeplane/credentials/restapi-password") as f:
    password = f.read().strip()
request = urllib.request.Request("http://127.0.0.1:8008/switchover", method="POST",
    data=json.dumps({"leader": leader, "candidate": candidate}).encode(),
    headers={"Content-Type": "application/json", "Authorization": "Basic " + base64.b64encode(b"patroni:" + password.encode()).decode()})
print(urllib.request.urlopen(request, timeout=60).read().decode())
`

// switchover to a server.
func (d *database) switchover(ctx context.Context, candidate string) error {
	old := d.primary()
	if old.GetName() == candidate {
		return nil
	}
	_, err := cluster.Exec(ctx, d.namespace, old.GetName(), container, strings.NewReader(old.GetName()+" "+candidate), "python3", "-c", switchoverScript)
	if err != nil {
		return err
	}
	return d.world.Await(ctx, soon, candidate+" to be primary", func() (bool, string) {
		p := d.primary()
		if p == nil {
			return false, "not exactly one pod is"
		}
		return p.GetName() == candidate, "it is " + p.GetName()
	})
}
