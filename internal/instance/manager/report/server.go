package report

// Trouble of a server in words, by Patroni's word for its state, or "".
func Trouble(state string) string {
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
