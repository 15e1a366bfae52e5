// Command triage compares what gosec has found with what has been decided about it; "make lint" runs it.
//
// In: gosec's findings as JSON on standard input, and a file of decisions, one per line:
//
//	CLASS  PATTERN  why it is none
//
// PATTERN is a regular expression for "file: the line that was found", files below the module's root. A line that
// begins with blanks continues the reason above it; "#" begins a comment. Out: findings without a decision, and
// decisions that nothing is found for any more, both errors. A decision without a reason is none.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", ".", "the module's directory")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: triage [-root DIR] DECISIONS <findings.json")
		os.Exit(2)
	}
	text, err := os.ReadFile(flag.Arg(0))
	if err == nil {
		err = triage(os.Stdout, os.Stdin, string(text), *root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "triage:", err)
		os.Exit(1)
	}
}
