// Package straced reads what strace wrote down about a program: which files it touched, what it listens on, whom it
// connects to, and what it starts.
//
// In: a file of strace, run with the Options. Out: Touched values, each once. What the programs do that ours starts is
// theirs: only calls of threads with the name of our program count.
//
// Vocabulary:
//
//   - Touched is a kind and a path or an address. A call that failed counts as well: it was tried.
//   - Write is whatever changes something: opened for writing, made, removed, renamed, linked, another mode or owner.
//     Read is all else.
//
// A path is absolute and clean; one that the call names relative to an open directory is put behind that directory's
// path, which strace tells. Links are not followed: it is what the program said.
package straced
