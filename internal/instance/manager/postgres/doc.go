// Package postgres reconciles roles, databases and extensions of a server, and reads its
// state. It connects over the socket as the superuser, runs one statement at a time, and keeps
// no transaction open.
package postgres
