package supervisor

import (
	"strings"
	"testing"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
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

// A server joins by another spelling of its name each time, and asks the others by the one that they know.
func TestMembershipRespellsTheOwnAddress(t *testing.T) {
	s := &Supervisor{Config: Config{Pod: pod(1)}, outside: named{}}
	first, second := s.membership("g", clusterOf(pod(0), pod(1))), s.membership("g", clusterOf(pod(0), pod(1)))
	if first.Address == second.Address || !strings.EqualFold(first.Address, second.Address) {
		t.Errorf("the addresses are %q and %q, want two spellings of one", first.Address, second.Address)
	}
	if len(first.Seeds) != 1 || first.Seeds[0] != (named{}).Address(pod(0)) {
		t.Errorf("the seeds are %q", first.Seeds)
	}
}

// named is a cluster whose servers have names.
type named struct{ Outside }

func (named) Address(pod string) string { return pod + ".orders-mysql.shop.svc:3306" }

func clusterOf(pods ...string) *group.Cluster {
	c := &group.Cluster{}
	for _, pod := range pods {
		c.Volumes = append(c.Volumes, group.Volume{Pod: pod})
	}
	return c
}
