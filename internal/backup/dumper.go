package backup

// Dumper is the component of the Secret with which the databases of a DatabaseCluster are dumped, where its
// engine has a user for that: mysql.
const Dumper = "dumper"

// DumperSecret returns the name of that Secret.
func DumperSecret(cluster string) string { return cluster + "-" + Dumper }
