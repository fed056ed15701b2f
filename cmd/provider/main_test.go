package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/test/plane"
	"github.com/storeplane/storeplane/test/plane/planetest"
)

// startTimeout is how long the tests wait for a provider that starts.
const startTimeout = 2 * time.Minute

// envMain makes the test binary run as the command itself.
const envMain = "STOREPLANE_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(envMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestLeaseIsFollowed: the provider keeps the bounds in docs/operations.md for the change of its
// leader, by the rules of leader election: a replica that polls the lease observes its last
// renewal, and then its end, each up to 2.2 retry periods late.
func TestLeaseIsFollowed(t *testing.T) {
	const bound, start = 20 * time.Second, 3 * time.Second
	if worst := leaseDuration + 2*time.Duration(2.2*float64(retryPeriod)); worst+start > bound {
		t.Errorf("another replica leads after %s at most, which leaves less than %s of %s to start the controllers", worst, start, bound)
	}
	if leaseDuration%time.Second != 0 {
		t.Errorf("a lease holds its duration in whole seconds, got %s", leaseDuration)
	}
	if margin := leaseDuration - renewDeadline; margin < 3*time.Second {
		t.Errorf("a leader that cannot renew must stop well before another one leads, got %s", margin)
	}
}

// TestLogged: each reason is logged once.
func TestLogged(t *testing.T) {
	away, young := errors.New("cannot serve: the cache is not in sync"), errors.New("cannot serve: there is no kind Backup yet")
	answers := []error{away, away, young, nil, nil, away}
	log := &memory{}
	next := 0
	check := logged(func(*http.Request) error { next++; return answers[next-1] }, log)
	for _, want := range answers {
		if got := check(nil); !errors.Is(got, want) {
			t.Errorf("the answer is the check's: want %v, got %v", want, got)
		}
	}
	if diff := cmp.Diff([]string{"Not ready: " + away.Error(), "Not ready: " + young.Error(), "Ready", "Not ready: " + away.Error()}, log.lines); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// memory is a logger that keeps its lines.
type memory struct {
	logging.Logger

	lines []string
}

func (m *memory) Info(msg string, kv ...any) {
	if len(kv) == 2 {
		msg += fmt.Sprintf(": %s", kv[1])
	}
	m.lines = append(m.lines, msg)
}

// replica is a replica of the provider in a process of its own.
type replica struct {
	cmd    *exec.Cmd
	health string
	log    *bytes.Buffer
}

func startReplica(t *testing.T, kubeconfig string) *replica {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{health: lis.Addr().String(), log: &bytes.Buffer{}}
	if err := lis.Close(); err != nil {
		t.Fatal(err)
	}
	r.cmd = exec.Command(os.Args[0], "--metrics-address=0", "--health-address="+r.health, "--namespace=default") //nolint:noctx // It is ended by a signal.
	r.cmd.Env = append(os.Environ(), envMain+"=1", "KUBECONFIG="+kubeconfig)
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("a replica's log:\n%s", r.log)
		}
	})
	return r
}

// end sends a signal to the replica, and waits until it has ended.
func (r *replica) end(s os.Signal) error {
	if r.cmd.ProcessState != nil {
		return nil
	}
	if err := r.cmd.Process.Signal(s); err != nil {
		return err
	}
	return r.cmd.Wait()
}

func (r *replica) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.health+"/readyz", nil)
	if err != nil {
		return err
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if rsp.StatusCode != http.StatusOK {
		err = errors.New(rsp.Status)
	}
	return errors.Join(err, rsp.Body.Close())
}

// installed starts an API server with the provider's definitions and permissions, and returns an
// administrator's client and the provider's kubeconfig.
func installed(t *testing.T) (client.Client, string) {
	t.Helper()
	p, admin := planetest.Installed(t, "../..", false)
	kubeconfig, err := p.Kubeconfig(plane.Provider)
	if err != nil {
		t.Fatal(err)
	}
	return admin, kubeconfig
}

// TestWorksWithoutClaims: a provider that may not read claims, because it is newer than its
// ClusterRole, still reconciles AppConfigs.
func TestWorksWithoutClaims(t *testing.T) {
	admin, kubeconfig := installed(t)
	planetest.Define(t, admin)
	role := &rbacv1.ClusterRole{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "storeplane-provider"}, role); err != nil {
		t.Fatal(err)
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.APIGroups, "apps.example.com") || slices.Contains(r.APIGroups, "platform.example.com")
	})
	if err := admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	f := &failover{Client: admin, leader: startReplica(t, kubeconfig)}
	f.works(t, "without-claims")
	planetest.Eventually(t, startTimeout, "the provider is ready", func() error { return f.leader.ready(t.Context()) })
}

// TestFailover ends the leader of two replicas, once with and once without a release of its lease,
// and measures the time until the other one reconciles.
func TestFailover(t *testing.T) {
	admin, kubeconfig := installed(t)
	f := &failover{Client: admin, leader: startReplica(t, kubeconfig)}
	f.works(t, "first")
	cases := []struct {
		reason string
		signal os.Signal
		within time.Duration
	}{
		{reason: "A leader that is killed leaves its lease to run out.", signal: syscall.SIGKILL, within: 20 * time.Second},
		{reason: "A leader that is asked to stop gives its lease back.", signal: syscall.SIGTERM, within: 10 * time.Second},
	}
	for n, tc := range cases {
		other := startReplica(t, kubeconfig)
		planetest.Eventually(t, startTimeout, "the other replica is ready", func() error { return other.ready(t.Context()) })
		before, start := f.holder(t), time.Now()
		// The exit status of a process that was killed does not matter.
		if err := f.leader.end(tc.signal); err != nil && tc.signal == syscall.SIGTERM {
			t.Errorf("%s\nit must end well: %v", tc.reason, err)
		}
		planetest.Eventually(t, startTimeout, "another one leads", func() error {
			if h := f.holder(t); h == before || h == "" {
				return fmt.Errorf("the leader is %q", h)
			}
			return nil
		})
		leads := time.Since(start)
		f.works(t, fmt.Sprintf("after-%d", n))
		works := time.Since(start)
		t.Logf("after %s the other replica leads in %.1fs and works in %.1fs", tc.signal, leads.Seconds(), works.Seconds())
		if works > tc.within {
			t.Errorf("%s\nwant the other replica at work within %s, got %s", tc.reason, tc.within, works)
		}
		f.leader = other
	}
}

// TestFollowerHasRead: a replica that waits to become the leader has read what it watches by then. Here it could not read
// it after that.
func TestFollowerHasRead(t *testing.T) {
	admin, kubeconfig := installed(t)
	f := &failover{Client: admin, leader: startReplica(t, kubeconfig)}
	f.works(t, "before")
	other := startReplica(t, kubeconfig)
	planetest.Eventually(t, startTimeout, "the other replica is ready", func() error { return other.ready(t.Context()) })
	for _, name := range []string{"granted", "storeplane-provider"} {
		role := &rbacv1.ClusterRole{}
		if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, role); err != nil {
			t.Fatal(err)
		}
		for i, rule := range role.Rules {
			if slices.Contains(rule.Verbs, "*") {
				rule.Verbs = []string{"get", "create", "update", "patch", "delete"}
			}
			role.Rules[i].Verbs = slices.DeleteFunc(rule.Verbs, func(v string) bool { return v == "list" || v == "watch" })
		}
		role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return len(r.Verbs) == 0 })
		if err := admin.Update(t.Context(), role); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.leader.end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	f.works(t, "after")
}

type failover struct {
	client.Client

	leader *replica
}

// works waits until a new resource of each kind has a status.
func (f *failover) works(t *testing.T, name string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: "default", Name: name}
	database := backupv1.Database{Type: backupv1.PostgreSQL, Connection: backupv1.Connection{SecretRef: &backupv1.ConnectionSecret{Name: "absent", Key: "uri"}}}
	all := []resource.Managed{
		&configv1.AppConfig{
			ObjectMeta: meta,
			Spec:       configv1.AppConfigSpec{ForProvider: configv1.AppConfigParameters{Application: name, Environment: "dev", Config: map[string]string{"A": "1"}}},
		},
		&backupv1.Backup{
			ObjectMeta: meta,
			Spec:       backupv1.BackupSpec{ForProvider: backupv1.BackupParameters{Source: database, Destination: backupv1.Destination{Type: backupv1.S3, Bucket: "b"}, Schedule: "0 2 * * *"}},
		},
		&backupv1.Restore{
			ObjectMeta: meta,
			Spec:       backupv1.RestoreSpec{ForProvider: backupv1.RestoreParameters{Source: backupv1.RestoreSource{BackupRef: &backupv1.LocalReference{Name: "absent"}}, Target: database}},
		},
	}
	for _, mg := range all {
		if err := f.Create(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
	}
	for _, mg := range all {
		planetest.Eventually(t, startTimeout, fmt.Sprintf("%T %s is reconciled", mg, name), func() error {
			if err := f.Get(t.Context(), client.ObjectKeyFromObject(mg), mg); err != nil {
				return err
			}
			if synced := mg.GetCondition(xpv2.TypeSynced); synced.Status == corev1.ConditionUnknown {
				return errors.New("it has no condition Synced")
			}
			return nil
		})
	}
}

func (f *failover) holder(t *testing.T) string {
	t.Helper()
	l := &coordinationv1.Lease{}
	if err := f.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: leaseName}, l); err != nil {
		t.Fatal(err)
	}
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}
