// Command sbom writes the bill of materials of programs as CycloneDX 1.6 in JSON; "make sbom" runs it.
//
// In: built programs, and for packages their version and the time of the commit, which are not in programs that are to be the
// same wherever they are built. What is in them is read from themselves (runtime/debug.BuildInfo), not from go.mod: what go.mod lists for
// tests and benchmarks is in no program. Out: one document, the first program as its subject, every module that is linked into any
// of them as a component, with the names of the programs that hold it and the licenses that stand beside its sources, and Go's standard library as
// another.
//
// # Promises
//
// The same programs give the same bytes: nothing in the document comes from the clock or the machine. Nothing is described that
// is not what is promised elsewhere: a program that was built with cgo, that is linked with more than libc, that holds a module which
// was replaced, one without a checksum, or one under a license that is not known, is an error.
package main
