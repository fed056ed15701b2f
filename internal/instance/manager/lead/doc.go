// Package lead decides which server of a cluster starts first where volumes of
// an earlier one of its name were kept. Patroni knows nothing of them: whichever
// server came first would make an empty database, or lead with old data, and the
// others would follow it. The package asks no one and starts nothing.
package lead
