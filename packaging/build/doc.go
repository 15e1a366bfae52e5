// Command build makes the packages: deb, rpm and tar.gz for each architecture,
// with the bills of materials and SHA256SUMS.
//
// In: the sources of a commit, its version and its time. Out: dist/. For every
// architecture the programs are compiled without cgo; manual pages, completions,
// the default configuration and an example for HAProxy are what the programs themselves print; all of
// it is laid out below dist/stage and listed in packaging/nfpm.yaml, which
// says what goes where. nfpm, a pinned version, makes deb and rpm of that list;
// the tar.gz is made here, of the same list.
//
// Promises: the same commit gives the same bytes, on any machine with the same
// Go: no time but the commit's, no name of a host, user or directory gets into
// a package. A file that is laid out and not listed, or listed and not laid
// out, is an error.
//
// Vocabulary: an item is a line of contents in nfpm.yaml; the stage is the
// directory that sources of items are relative to.
package main
