package report

// ServerProblem returns the message about a server that has a problem, given its state as Patroni
// reports it, or "".
func ServerProblem(state string) string {
	switch state {
	case "creating replica":
		return "Copying the primary's data"
	case "start failed", "restart failed":
		return "PostgreSQL does not start"
	case "crashed":
		return "PostgreSQL has crashed"
	case "stop failed":
		return "PostgreSQL does not stop"
	case "stopped":
		return "PostgreSQL is stopped"
	}
	return ""
}
