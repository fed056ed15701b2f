// Package postgres brings roles, databases and extensions of a server in line,
// and asks it what only it knows. It connects over the socket as the superuser,
// one statement at a time, and keeps no transaction open.
package postgres
