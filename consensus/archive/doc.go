// Package archive is the file that `saltclusterctl snapshot` writes and reads: the whole state of a cluster, its
// identity included, in one file.
//
// In and out: a Header, which holds no secret and is what `snapshot inspect` shows, and a Content, which holds all of
// them. The package does not parse the state.
//
// The format, with big-endian numbers:
//
//	"saltclusterd snapshot\n"   22 bytes
//	version                      1 byte, 1
//	length of the header         4 bytes, then the header as JSON
//	length of the body           8 bytes, then the body
//	SHA-256 of all before       32 bytes
//
// The body is lengths (4 bytes each) and texts of the identity's private and public key, the clock (8 bytes), and the
// state to the end. saltclusterctl encrypts the whole file with age (https://age-encryption.org) when there is a
// passphrase.
//
// Promises: a file that is truncated, damaged or not a snapshot is refused before any of its content is used; memory is
// bounded by the size of the file and by MaxBody; errors quote nothing of a body.
package archive
