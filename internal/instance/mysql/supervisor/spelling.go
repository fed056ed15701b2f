package supervisor

import (
	"math/rand/v2"
	"strings"

	"github.com/storeplane/storeplane/internal/instance/mysql/mysqld"
)

// address returns the address by which the server joins a group next: another spelling of its name each time.
// All spellings lead to the same host, and are the same name in a certificate (RFC 4343, RFC 6125
// section 6.4.1).
//
// The members of a group know a server by how its address is spelled. They go on to connect to one that has
// left, and wait a second longer after each attempt, up to 10 s. When it joins again by the same spelling they
// connect to it only after such a wait, and take no writes meanwhile; by a new one they connect at once, and
// again 0.1 s later (sender_task and find_server in
// https://github.com/mysql/mysql-server/blob/trunk/plugin/group_replication/libmysqlgcs/src/bindings/xcom/xcom/xcom_transport.cc).
//
// The spelling stays until the server was in the group by it. Before, as when it is killed while it joins, the
// members may already count it without showing it, and then refuse a second one of that spelling alone.
func (s *Supervisor) address() (string, error) {
	own := s.outside.Address(s.Pod)
	last, err := s.Files.Joined()
	if err != nil {
		return "", err
	}
	if !last.Seen && strings.EqualFold(last.Address, own) {
		return last.Address, nil
	}
	next := mysqld.Joined{Address: respelled(own)}
	s.seen = false
	return next.Address, s.Files.SetJoined(next)
}

// inGroup records that the server is in the group that it has joined.
func (s *Supervisor) inGroup() error {
	if s.seen {
		return nil
	}
	last, err := s.Files.Joined()
	if err != nil {
		return err
	}
	if last.Address != "" && !last.Seen {
		last.Seen = true
		err = s.Files.SetJoined(last)
	}
	s.seen = err == nil
	return err
}

// respelled returns another spelling of an address: some letters of the name become capitals, at random.
func respelled(address string) string {
	out := []byte(address)
	for i, c := range out {
		if 'a' <= c && c <= 'z' && rand.IntN(2) == 0 { //nolint:gosec // no secret
			out[i] = c - 'a' + 'A'
		}
	}
	return string(out)
}
