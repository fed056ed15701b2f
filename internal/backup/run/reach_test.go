package run

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// TestStores: a store that fails is reported with the reason within 90 seconds.
func TestStores(t *testing.T) {
	long(t)
	s := startPostgreSQL(t)
	for kind, start := range destinations {
		t.Run(string(kind), func(t *testing.T) {
			d := start(t)
			f := newFixture(t, s, "postgres", d)
			f.succeed(backup.Check)

			if kind != backupv1.Volume {
				f.fail(backup.Check, backup.BucketMissing, func(t *backup.Task) { t.Destination.Bucket = "nosuchbucket" })
				f.fail(backup.Backup, backup.BucketMissing, func(t *backup.Task) { t.Destination.Bucket = "nosuchbucket" })
			}
			switch kind {
			case backupv1.S3:
				f.Store = t.TempDir()
				write(t, f.Store, map[string]string{"AWS_ACCESS_KEY_ID": "shop", "AWS_SECRET_ACCESS_KEY": "wrong"})
				f.fail(backup.Check, backup.StoreDenied)
				write(t, f.Store, map[string]string{"AWS_ACCESS_KEY_ID": "nobody"})
				f.fail(backup.Check, backup.StoreDenied)
			case backupv1.Azure:
				f.Store = t.TempDir()
				write(t, f.Store, map[string]string{"AZURE_STORAGE_ACCOUNT": "devstoreaccount1", "AZURE_STORAGE_KEY": "d3Jvbmc="})
				f.fail(backup.Check, backup.StoreDenied)
				write(t, f.Store, map[string]string{"AZURE_STORAGE_KEY": "no base64 !"})
				f.fail(backup.Check, backup.StoreDenied)
			case backupv1.GCS:
				f.Store = t.TempDir()
				write(t, f.Store, map[string]string{"credentials.json": "{}"})
				f.fail(backup.Check, backup.StoreDenied)
			case backupv1.Volume:
				f.Volume = filepath.Join(t.TempDir(), "none")
				f.fail(backup.Check, backup.BucketMissing)
				return
			}

			f.Store = d.credentials
			d.down()
			began := time.Now()
			f.fail(backup.Check, backup.StoreUnreachable)
			if took := time.Since(began); took > 90*time.Second {
				t.Errorf("it took %s to say so", took)
			}
			// No host has this address.
			began = time.Now()
			f.fail(backup.Check, backup.StoreUnreachable, func(t *backup.Task) { t.Destination.Endpoint = "http://192.0.2.1:9" })
			if took := time.Since(began); took > 90*time.Second {
				t.Errorf("it took %s to say so", took)
			}
		})
	}
}

// TestSources: a database that refuses the connection is reported with the reason.
func TestSources(t *testing.T) {
	for engine, start := range sources {
		t.Run(string(engine), func(t *testing.T) {
			s := start(t)
			createDatabase(t, s, "shop")
			f := newFixture(t, s, "shop", newVolume(t))
			u, err := url.Parse(s.uri("shop"))
			must(t, err)

			if engine != backupv1.MongoDB { // FerretDB has no users
				must(t, os.Remove(filepath.Join(f.Source, "uri")))
				write(t, f.Source, map[string]string{"username": "shop", "password": password, "host": u.Hostname(), "port": u.Port(), "dbname": "shop"})
				f.succeed(backup.Check)
				write(t, f.Source, map[string]string{"password": "wrong-" + password})
				f.fail(backup.Check, backup.SourceDenied)
				f.fail(backup.Backup, backup.SourceDenied)
			}
			f.from(s, "nosuchdatabase")
			f.fail(backup.Check, backup.SourceUnreachable)
			f.fail(backup.Backup, backup.SourceUnreachable)
			write(t, f.Source, map[string]string{"uri": fmt.Sprintf("%s://shop:%s@127.0.0.1:1/shop", u.Scheme, url.QueryEscape(password))})
			f.fail(backup.Check, backup.SourceUnreachable)
			write(t, f.Source, map[string]string{"uri": "shop:" + password})
			f.fail(backup.Check, backup.InvalidTask)
			must(t, os.RemoveAll(f.Source))
			f.fail(backup.Check, backup.InvalidTask)
		})
	}
}

// TestSourceLate: a pod that has just started may reach its database only after a moment, when the
// network has been set up for the pod. That is no failure.
func TestSourceLate(t *testing.T) {
	for engine, start := range sources {
		t.Run(string(engine), func(t *testing.T) {
			s := start(t)
			createDatabase(t, s, "shop")
			if engine == backupv1.MongoDB { // a database exists as long as it has a collection
				s.data(t, "shop", "load", "--rows=10", "--bulk=1")
			}
			f := newFixture(t, s, "shop", newVolume(t))
			u, err := url.Parse(s.uri("shop"))
			must(t, err)
			server := u.Host
			u.Host = closedAddress(t)
			write(t, f.Source, map[string]string{"uri": u.String()})

			f.RetryFor = time.Minute
			time.AfterFunc(time.Second, func() { forward(t, u.Host, server) })
			f.succeed(backup.Check)
		})
	}
}

// TestTargetUserLate: a Restore that is applied together with its database may reach it before the user of the
// Secret is created, or has its privileges. That is no failure, and a wrong password still is one.
func TestTargetUserLate(t *testing.T) {
	for engine, start := range sources {
		if engine == backupv1.MongoDB { // FerretDB has no users
			continue
		}
		t.Run(string(engine), func(t *testing.T) {
			s := start(t)
			createDatabase(t, s, "shop")
			s.data(t, "shop", "load", "--rows=10", "--bulk=1")
			f := newFixture(t, s, "shop", newVolume(t))
			f.succeed(backup.Backup)

			createDatabase(t, s, "late")
			u, err := url.Parse(s.uri("late"))
			must(t, err)
			u.User = url.UserPassword("late", "later")
			late := f.beside(s, "late")
			write(t, late.Source, map[string]string{"uri": u.String()})
			late.RetryFor = time.Second
			late.fail(backup.Restore, backup.SourceDenied)

			// It is created before the second attempt, and has its privileges before the third.
			admin, create, grant := "postgres", "CREATE ROLE late LOGIN PASSWORD 'later'", `ALTER DATABASE late OWNER TO late`
			if engine == backupv1.MySQL {
				admin, create, grant = "mysql", "GRANT SET USER ON *.* TO late IDENTIFIED BY 'later'", "GRANT ALL ON late.* TO late WITH GRANT OPTION"
			}
			late.RetryFor = 16 * time.Second
			steps := make(chan struct{})
			go func() {
				defer close(steps)
				time.Sleep(late.RetryFor / 16)
				s.data(t, admin, "exec", create)
				time.Sleep(late.RetryFor / 4)
				s.data(t, admin, "exec", grant)
			}()
			late.succeed(backup.Restore)
			<-steps
			if got, want := s.sums(t, "late"), s.sums(t, "shop"); got != want {
				t.Errorf("restored:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// TestSourceNoSuchHost: a host name that does not exist is not retried.
func TestSourceNoSuchHost(t *testing.T) {
	for engine, start := range sources {
		t.Run(string(engine), func(t *testing.T) {
			s := start(t)
			createDatabase(t, s, "shop")
			f := newFixture(t, s, "shop", newVolume(t))
			u, err := url.Parse(s.uri("shop"))
			must(t, err)
			// No resolver is needed to reject this name.
			u.Host = "shop..example:" + u.Port()
			write(t, f.Source, map[string]string{"uri": u.String()})

			f.RetryFor = time.Minute
			began := time.Now()
			f.fail(backup.Check, backup.SourceUnreachable)
			if took := time.Since(began); took >= f.RetryFor {
				t.Errorf("it took %s to say so", took)
			}
		})
	}
}

// closedAddress returns an address on which nothing listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// forward forwards connections to an address from now on.
func forward(t *testing.T, from, to string) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", from)
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() { _ = l.Close() })
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", to)
		if err != nil {
			_ = in.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
			go func() {
				_, _ = io.Copy(pair[0], pair[1])
				_ = pair[0].Close()
			}()
		}
	}
}
