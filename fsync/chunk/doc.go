// Package chunk cuts files into the pieces by which they travel. A file of at most 1 MiB is one piece. A larger one is
// cut where its content says so (Rabin fingerprints with a fixed polynomial), so that an insertion changes one or two
// pieces, and every node cuts the same content in the same places. Pieces have 512 KiB to 4 MiB, about 1.5 MiB on
// average.
//
// The polynomial and the sizes are part of the cluster's format: to change them makes every large file look changed.
package chunk
