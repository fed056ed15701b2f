// Package folder writes a folder as an archive in the format of tar, and makes a folder of one again.
//
// Only regular files and folders exist for it: anything else in a folder is an error, and so is anything
// else in an archive, or a name that leads out of the folder. Owners and times are not kept.
package folder
