package config

import (
	"fmt"
	"strings"
)

// Finding is one mistake in the configuration.
type Finding struct {
	File    string `json:"file,omitempty"` // empty: no file is to blame
	Line    int    `json:"line,omitempty"` // 0: the file as a whole
	Option  string `json:"option,omitempty"`
	Message string `json:"message"`        // a sentence without the option's name in front; never holds a secret
	Hint    string `json:"hint,omitempty"` // what to write or type instead
}

// String renders "file:line: option: message (hint)".
func (f Finding) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d", f.Line)
		}
		b.WriteString(": ")
	}
	if f.Option != "" {
		b.WriteString(f.Option + ": ")
	}
	b.WriteString(f.Message)
	if f.Hint != "" {
		b.WriteString(" (" + f.Hint + ")")
	}
	return b.String()
}

// Findings are all mistakes of one configuration, in the order of the files
// and then of the option table. It is the error that Load and Validate return.
type Findings []Finding

// Error lists the findings, one per line.
func (f Findings) Error() string {
	lines := make([]string, len(f))
	for i, one := range f {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// asError returns f as an error, nil when there is nothing to say.
func (f Findings) asError() error {
	if len(f) == 0 {
		return nil
	}
	return f
}
