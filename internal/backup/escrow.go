package backup

// EscrowNamespace holds copies of the keys of databases' own, so that backups can be read
// whose namespace is lost. Only the platform team and the provider need rights there.
const EscrowNamespace = "storeplane-escrow"

// EscrowKey is the key of a copy that has the encryption's key. A copy without it says that
// the database's backups are plain.
const EscrowKey = "key"

// EscrowAnnotation of a Backup asks for a copy of the key that it names, or that says that
// it names none.
const EscrowAnnotation = "backup.example.com/escrow"

// EscrowName of a database's copy. Neither a namespace nor a DatabaseCluster has a dot in
// its name.
func EscrowName(namespace, name string) string { return namespace + "." + name }
