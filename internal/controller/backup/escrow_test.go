package backup

import (
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// TestDecideEscrow: a copy is made once, and is never written over.
func TestDecideEscrow(t *testing.T) {
	copied := func(key string) *corev1.Secret {
		out := &corev1.Secret{}
		if key != "" {
			out.Data = map[string][]byte{backup.EscrowKey: []byte(key)}
		}
		return out
	}
	const (
		differs = "EscrowDiffers: Secret storeplane-escrow/shop.orders "
		unless  = ", or have the platform team delete the copy once no backup needs it"
	)
	own := func(s *State) {
		s.params().Encryption = &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: "orders-backup-key", Key: "key"}}
	}
	cases := map[string]struct {
		reason string
		escrow *escrow
		made   map[string][]byte
		makes  bool
		want   string
	}{
		"NotAsked": {reason: "A Backup that does not ask has none."},
		"New":      {reason: "The key is copied.", escrow: &escrow{key: []byte("k1"), possible: true}, makes: true, made: copied("k1").Data, want: "EscrowPending: Waiting for Secret storeplane-escrow/shop.orders, the copy of the database's key"},
		"Missing":  {reason: "There is nothing to copy yet.", escrow: &escrow{missing: "orders-backup-key"}, want: "EscrowPending: Waiting for Secret orders-backup-key, which holds the database's key"},
		"Plain":    {reason: "That there is none is written down.", escrow: &escrow{possible: true}, makes: true, want: "EscrowPending: Waiting for Secret storeplane-escrow/shop.orders, the copy of the database's key"},
		"Kept":     {reason: "It is there.", escrow: &escrow{key: []byte("k1"), kept: copied("k1")}},
		"KeptNone": {reason: "So is that there is none.", escrow: &escrow{kept: copied("")}},
		"Nowhere":  {reason: "There is no place for it.", escrow: &escrow{key: []byte("k1")}, want: "EscrowNotFound: Namespace storeplane-escrow, which keeps a copy of each database's key, does not exist: create it"},
		"Another":  {reason: "Backups of before need the key that is kept.", escrow: &escrow{key: []byte("k2"), kept: copied("k1")}, want: differs + "holds another key than the backups are written with now: those of before need it. Put its key back into Secret orders-backup-key" + unless},
		"Lost":     {reason: "Also those of a database that is plain now.", escrow: &escrow{kept: copied("k1")}, want: differs + "holds a key, and the backups are plain now: those of before need it. Name another destination with that key in backup.encryption" + unless},
		"Late":     {reason: "What is plain is not read with a key.", escrow: &escrow{key: []byte("k1"), kept: copied("")}, want: differs + "says that the backups are plain, and they are written with a key now: those of before cannot be read with it. Name another destination" + unless},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := decide(t, state(physical, settle(t), own, func(s *State) { s.Escrow = tc.escrow }))
			makes := false
			for _, o := range d.Apply {
				s, ok := o.(*corev1.Secret)
				if !ok || s.Namespace != backup.EscrowNamespace {
					continue
				}
				makes = true
				if diff := cmp.Diff(tc.made, s.Data); diff != "" || s.Name != "shop.orders" {
					t.Errorf("%s\nSecret %s: -want, +got:\n%s", tc.reason, s.Name, diff)
				}
				if len(s.OwnerReferences) > 0 || s.Immutable == nil || !*s.Immutable {
					t.Errorf("%s\nThe copy goes with the Backup, or can be changed: %v", tc.reason, s.ObjectMeta)
				}
			}
			if makes != tc.makes {
				t.Errorf("%s\nmakes a copy: %t, want %t", tc.reason, makes, tc.makes)
			}
			if r := (&view{State: &State{Backup: state(physical, own).Backup, Escrow: tc.escrow}}).unescrowed(); tc.want != "" {
				if got := string(r.reason) + ": " + r.message; got != tc.want {
					t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
				}
				for _, c := range d.Conditions {
					if c.Type == backupv1.TypeEscrowed && (c.Status != corev1.ConditionFalse || c.Message != r.message) {
						t.Errorf("%s\nEscrowed says %s %s", tc.reason, c.Status, c.Message)
					}
					if c.Type == xpv2.TypeReady && c.Reason != r.reason {
						t.Errorf("%s\nReady says %s: %s", tc.reason, c.Reason, c.Message)
					}
				}
			} else if r != nil {
				t.Errorf("%s\nwant nothing said, got %s", tc.reason, r.message)
			}
		})
	}
}
