package supervisor

import "math/rand/v2"

// respelled returns another spelling of an address, host:port: some letters of the name become capitals, at
// random. All spellings lead to the same host, and are the same name in a certificate (RFC 4343, RFC 6125
// section 6.4.1).
//
// The members of a group know a server by how its address is spelled. They go on to connect to one that has
// left, and wait 0.1 s longer after each attempt. When it joins again by the same spelling they connect to
// it only after that wait, and take no writes meanwhile, for 3 s and more; by a new one they connect at once
// (sender_task and find_server in
// https://github.com/mysql/mysql-server/blob/trunk/plugin/group_replication/libmysqlgcs/src/bindings/xcom/xcom/xcom_transport.cc).
func respelled(address string) string {
	out := []byte(address)
	for i, c := range out {
		if 'a' <= c && c <= 'z' && rand.IntN(2) == 0 { //nolint:gosec // no secret
			out[i] = c - 'a' + 'A'
		}
	}
	return string(out)
}
