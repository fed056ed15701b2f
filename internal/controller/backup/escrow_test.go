package backup

import (
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// TestDecideEscrow: a copy of the key is created once, and never overwritten.
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
		"Late":     {reason: "What is plain is not read with a key.", escrow: &escrow{key: []byte("k1"), kept: copied("")}, want: differs + "marks the backups as plain, and they are encrypted with a key now: those of before cannot be read with it. Name another destination" + unless},
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

// TestDecideOwnKey: a Backup with method logical keeps the encryption with which its backups began.
func TestDecideOwnKey(t *testing.T) {
	const (
		first  = "AGE-SECRET-KEY-1QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN5"
		copied = "apply Secret shop.orders.backup"
		secret = "apply Secret orders-dump-key"
		cron   = "apply CronJob orders-dump"
		verify = "apply CronJob orders-verify"
		unless = " have the platform team delete the copy once no backup needs it"
	)
	key, drawn := identity(t), identity(t)
	kept := func(key []byte) *corev1.Secret {
		out := &corev1.Secret{}
		if key != nil {
			out.Data = map[string][]byte{backup.EscrowKey: key}
		}
		return out
	}
	// made sets up the Backup's account and policies, and no CronJobs.
	made := func(s *State) {
		settle(t)(s)
		s.CronJobs = nil
	}
	own := func(e escrow) func(*State) {
		return func(s *State) {
			if e.own == nil {
				e.own = &ownKey{draws: true, drawn: drawn}
			}
			s.Escrow = &e
		}
	}
	listed := func(n int32) func(*State) {
		return known(func(o *backupv1.BackupObservation) { o.Count, o.CatalogTime = n, at(hours(0)) })
	}
	isKept := says(condition(backupv1.TypeEscrowed, corev1.ConditionTrue, backupv1.ReasonKept, "", born))
	begun := func(secret string) func(*State) {
		return func(s *State) {
			c := batchv1.CronJob{ObjectMeta: meta(s.Backup, objectName(s.Backup.Name), nil)}
			if secret != "" {
				volume := corev1.Volume{Name: backup.KeyVolume}
				volume.Secret = &corev1.SecretVolumeSource{SecretName: secret}
				c.Spec.JobTemplate.Spec.Template.Spec.Volumes = []corev1.Volume{volume}
			}
			s.CronJobs = []batchv1.CronJob{c}
		}
	}
	type want struct {
		Escrowed string
		Do       []string
		Kept     string // what escrow gets
		Key      string // what the Backup's own Secret gets
		Mounts   string // the Secret that pods mount
	}
	pending := "False EscrowPending: Waiting for Secret storeplane-escrow/shop.orders.backup, the copy of the database's key"
	isPlain := "True Kept: The backups are plain, as they were before keys were generated: to encrypt them, name a key in spec.forProvider.encryption"
	cases := map[string]struct {
		reason string
		state  *State
		want   want
	}{
		"NotAsked": {reason: "Elsewhere there are no keys.", state: state(made), want: want{Do: []string{cron, verify, "create check"}}},
		"Unknown": {
			reason: "First it is checked whether there are backups.", state: state(made, own(escrow{possible: true})),
			want: want{Escrowed: "False EscrowPending: Waiting for the first contact with the store: a key is generated where there are no plain backups", Do: []string{"create check"}},
		},
		"Unlisted": {
			reason: "A check that could not list them is no answer.", state: state(made, own(escrow{possible: true}), checked(t), func(s *State) {
				s.Runs = append(s.Runs, digested(t, s, run("orders-check-x", backup.Check, hours(-1), hours(-1))))
			}),
			want: want{Escrowed: "False EscrowPending: Waiting for the first contact with the store: a key is generated where there are no plain backups", Do: []string{"create check"}},
		},
		"Fresh": {
			reason: "Where there are none a key is drawn, and its copy comes first.", state: state(made, own(escrow{possible: true}), checked(t), listed(0)),
			want: want{Escrowed: pending, Do: []string{copied, secret}, Kept: string(drawn), Key: string(drawn)},
		},
		"Working": {
			reason: "One may be made right now.", state: state(made, own(escrow{possible: true}), checked(t), listed(0), with(run("orders-run-x", backup.Backup, hours(0), time.Time{}))),
			want: want{Escrowed: "False EscrowPending: Waiting for the first contact with the store: a key is generated where there are no plain backups"},
		},
		"Nowhere": {
			reason: "No key is drawn of which no copy can be kept.", state: state(made, own(escrow{}), checked(t), listed(0)),
			want: want{Escrowed: "False EscrowNotFound: Namespace storeplane-escrow, which keeps a copy of each database's key, does not exist: create it"},
		},
		"Taken": {
			reason: "A Secret of another owner stays as it is, and no copy is kept of what is not used.", state: state(made, own(escrow{possible: true, own: &ownKey{draws: true, drawn: drawn, taken: true}}), checked(t), listed(0)),
			want: want{Escrowed: pending},
		},
		"Plain": {
			reason: "What is plain stays plain, and that is kept.", state: state(made, own(escrow{possible: true}), checked(t), listed(2)),
			want: want{Escrowed: pending, Do: []string{copied, cron, verify}},
		},
		"PlainBefore": {
			reason: "So does a Backup from before there were keys, also where the store cannot be reached.", state: state(made, own(escrow{possible: true}), begun("")),
			want: want{Escrowed: pending, Do: []string{copied, cron, verify, "create check"}},
		},
		"PlainNowhere": {
			reason: "It goes on where there is no place for copies.", state: state(made, own(escrow{}), begun("")),
			want: want{Escrowed: "False EscrowNotFound: Namespace storeplane-escrow, which keeps a copy of each database's key, does not exist: create it", Do: []string{cron, verify, "create check"}},
		},
		"PlainKept": {reason: "And ever after.", state: state(made, own(escrow{kept: kept(nil)}), checked(t), listed(0)), want: want{Escrowed: isPlain, Do: []string{cron, verify}}},
		"Keyed": {
			reason: "With a key that is kept backups are made.", state: state(made, own(escrow{key: key, kept: kept(key)})),
			want: want{Escrowed: "True Kept", Do: []string{cron, verify, "create check"}, Mounts: "orders-dump-key"},
		},
		"TurnedOff": {
			reason: "What has begun with a key keeps it.", state: state(made, own(escrow{key: key, kept: kept(key), own: &ownKey{}})),
			want: want{Escrowed: "True Kept", Do: []string{cron, verify, "create check"}, Mounts: "orders-dump-key"},
		},
		"NamedBefore": {
			reason: "A key of the user's own that is named no more is no plain backup.", state: state(made, own(escrow{possible: true}), begun("orders-age"), checked(t), listed(0)),
			want: want{Escrowed: pending, Do: []string{copied, secret}, Kept: string(drawn), Key: string(drawn)},
		},
		"CopyLost": {
			reason: "A copy is made again of the key in use, before anything else.", state: state(made, own(escrow{key: key, possible: true})),
			want: want{Escrowed: pending, Do: []string{copied, cron, verify, "create check"}, Kept: string(key), Mounts: "orders-dump-key"},
		},
		"CopyNowhere": {
			reason: "Nothing new is planned without one.", state: state(made, own(escrow{key: key}), checked(t)),
			want: want{Escrowed: "False EscrowNotFound: Namespace storeplane-escrow, which keeps a copy of each database's key, does not exist: create it", Mounts: "orders-dump-key"},
		},
		"SecretLost": {
			reason: "The Secret is made again of its copy.", state: state(made, own(escrow{kept: kept(key)})),
			want: want{Escrowed: "False EscrowPending: Waiting for Secret orders-dump-key, which is created again from its copy", Do: []string{secret, "create check"}, Key: string(key)},
		},
		"BothLost": {
			reason: "Another key is not drawn over one that is lost.", state: state(made, own(escrow{possible: true}), begun("orders-dump-key"), checked(t), listed(0)),
			want: want{Escrowed: "False SecretNotFound: Secret orders-dump-key, which holds the key of the backups, does not exist, and neither does its copy, Secret storeplane-escrow/shop.orders.backup: have the platform team create that with the key in key, or create this Backup again to begin with another key"},
		},
		"BothLostUnplanned": {
			reason: "Nor where no schedule mounted it.", state: state(made, own(escrow{possible: true}), isKept, checked(t), listed(0)),
			want: want{Escrowed: "False SecretNotFound: Secret orders-dump-key, which holds the key of the backups, does not exist, and neither does its copy, Secret storeplane-escrow/shop.orders.backup: have the platform team create that with the key in key, or create this Backup again to begin with another key"},
		},
		"Differs": {
			reason: "Backups of before need the key that is kept.", state: state(made, own(escrow{key: key, kept: kept(drawn)}), checked(t)),
			want: want{
				Escrowed: "False EscrowDiffers: Secret storeplane-escrow/shop.orders.backup holds another key than the backups are written with now: those of before need it. Put its key back into Secret orders-dump-key, or" + unless,
				Do:       []string{cron, verify}, Mounts: "orders-dump-key",
			},
		},
		"Late": {
			reason: "Plain ones of before are not read with a key.", state: state(made, own(escrow{key: key, kept: kept(nil)}), checked(t)),
			want: want{
				Escrowed: "False EscrowDiffers: Secret storeplane-escrow/shop.orders.backup marks the backups as plain, and they are encrypted with a key now: those of before cannot be read with it. Move the key to a Secret of another name and name that in spec.forProvider.encryption, or" + unless,
				Do:       []string{cron, verify}, Mounts: "orders-dump-key",
			},
		},
		"NoIdentity": {
			reason: "What is no key is not kept.", state: state(made, own(escrow{key: []byte(first + "x"), possible: true}), checked(t)),
			want: want{Escrowed: "False SecretKeyNotFound: Secret orders-dump-key holds no age identity in key: restore what it held, or delete it to have it created again from its copy", Mounts: "orders-dump-key"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := decide(t, tc.state)
			got := want{}
			for _, c := range d.Conditions {
				if c.Type == backupv1.TypeEscrowed {
					got.Escrowed = string(c.Status) + " " + string(c.Reason)
					if c.Message != "" {
						got.Escrowed += ": " + c.Message
					}
				}
			}
			for _, o := range d.Apply {
				got.Do = append(got.Do, "apply "+o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetName())
				s, ok := o.(*corev1.Secret)
				switch {
				case !ok:
				case s.Namespace == backup.EscrowNamespace:
					got.Kept = string(s.Data[backup.EscrowKey])
					if len(s.OwnerReferences) > 0 || s.Immutable == nil || !*s.Immutable {
						t.Errorf("%s\nThe copy goes with the Backup, or can be changed: %v", tc.reason, s.ObjectMeta)
					}
				default:
					got.Key = string(s.Data[backup.EscrowKey])
					if !backup.IsLogicalKey(s, "orders") {
						t.Errorf("%s\nThe Secret is not known again, or goes with the Backup: %v", tc.reason, s.ObjectMeta)
					}
				}
			}
			for _, j := range d.Create {
				got.Do = append(got.Do, "create "+j.Labels[backupv1.ActionLabel])
			}
			if e := tc.state.encryption(); e != nil {
				got.Mounts = e.SecretRef.Name
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for _, c := range d.Conditions {
				if strings.Contains(c.Message, "AGE-SECRET") {
					t.Errorf("A condition has the key: %s", c.Message)
				}
			}
		})
	}
}

func identity(t testing.TB) []byte {
	t.Helper()
	out, err := draw()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDecideOwnKeyTaken: the message names the Secret that is in the way.
func TestDecideOwnKeyTaken(t *testing.T) {
	s := state(settle(t), func(s *State) {
		s.CronJobs = nil
		s.Escrow = &escrow{possible: true, own: &ownKey{draws: true, drawn: identity(t), taken: true}}
		s.Backup.Status.AtProvider.CatalogTime = at(hours(0))
	}, checked(t))
	got := outcomeOf(decide(t, s)).Ready
	if want := "False AlreadyExists: Secret orders-dump-key exists already and is not this Backup's: delete it, or give the Backup another name"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}
