// Package lead decides which server of a cluster starts first when volumes of an earlier
// cluster of its name exist. Patroni does not compare them: whichever server came first would
// create an empty database, or lead with old data, and the others would follow it. The package
// reads nothing from other programs and starts nothing.
package lead
