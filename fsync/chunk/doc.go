// Package chunk cuts files into the chunks in which they are transferred. A file of at most 1 MiB is one chunk. A
// larger file is cut where its content says so (Rabin fingerprints with a fixed polynomial). An insertion therefore
// changes one or two chunks, and every node cuts the same content in the same places. Chunks have 512 KiB to 4 MiB,
// about 1.5 MiB on average.
//
// The polynomial and the sizes are part of the cluster's format: if they change, every large file looks changed.
package chunk
