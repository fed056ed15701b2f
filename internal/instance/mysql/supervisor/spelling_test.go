package supervisor

import (
	"strings"
	"testing"

	"github.com/storeplane/storeplane/internal/instance/mysql/mysqld"
)

func TestRespelled(t *testing.T) {
	const address = "orders-mysql-2.orders-mysql.shop.svc:3306"
	seen := map[string]bool{}
	for range 100 {
		got := respelled(address)
		if !strings.EqualFold(got, address) {
			t.Fatalf("respelled(%q) = %q, which is another name", address, got)
		}
		if seen[got] {
			t.Fatalf("respelled(%q) = %q for the second time", address, got)
		}
		seen[got] = true
	}
}

func TestRespelledKeepsWhatIsNoLetter(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1:23060", "É-1:1"} {
		if got := respelled(address); got != address {
			t.Errorf("respelled(%q) = %q", address, got)
		}
	}
}

// TestAddress: a server joins by another spelling of its name once it was in the group by the one before, and
// asks the others by the one that they know.
func TestAddress(t *testing.T) {
	files := mysqld.Files{Volume: t.TempDir()}
	restarted := func() *Supervisor {
		return &Supervisor{Config: Config{Pod: pod(1), Files: files}, outside: named{}}
	}
	joins := func(s *Supervisor) string {
		t.Helper()
		m, err := s.membership("g", []string{pod(0)})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.EqualFold(m.Address, named{}.Address(pod(1))) || len(m.Seeds) != 1 || m.Seeds[0] != (named{}).Address(pod(0)) {
			t.Fatalf("the server joins as %+v", m)
		}
		return m.Address
	}
	isIn := func(s *Supervisor) {
		t.Helper()
		if err := s.inGroup(); err != nil {
			t.Fatal(err)
		}
	}
	s := restarted()
	first := joins(s)
	if again := joins(s); again != first {
		t.Errorf("it tries again as %s, after %s", again, first)
	}
	s = restarted()
	if again := joins(s); again != first {
		t.Errorf("killed before it was in the group it joins as %s, after %s", again, first)
	}
	isIn(s)
	second := joins(s)
	if second == first {
		t.Errorf("it joins as %s for the second time", second)
	}
	isIn(s)
	s = restarted()
	isIn(s)
	if third := joins(s); third == second {
		t.Errorf("started again it joins as %s for the second time", third)
	}
}

// TestAddressMoved: what a volume records of another server says nothing.
func TestAddressMoved(t *testing.T) {
	files := mysqld.Files{Volume: t.TempDir()}
	if err := files.SetJoined(mysqld.Joined{Address: "OTHER-mysql-1.other-mysql.shop.svc:3306"}); err != nil {
		t.Fatal(err)
	}
	s := &Supervisor{Config: Config{Pod: pod(1), Files: files}, outside: named{}}
	if got, err := s.address(); err != nil || !strings.EqualFold(got, named{}.Address(pod(1))) {
		t.Errorf("the server joins as %s, %v", got, err)
	}
}

// named is a cluster whose servers have names.
type named struct{ Outside }

func (named) Address(pod string) string { return pod + ".orders-mysql.shop.svc:3306" }
