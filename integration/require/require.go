package require

import (
	"fmt"
	"strings"
)

// T is a test: one of package testing, or of rapid.
type T interface {
	Helper()
	Fatal(args ...any)
}

// NoError ends the test unless err is nil; about is the subject of the message.
func NoError(t T, err error, about ...any) {
	t.Helper()
	switch {
	case err == nil:
	case len(about) == 0:
		t.Fatal(err)
	default:
		t.Fatal(strings.TrimSuffix(fmt.Sprintln(about...), "\n")+":", err)
	}
}
