package config

import (
	"fmt"
	"slices"
	"strings"
)

// Finding is one mistake in the configuration.
type Finding struct {
	File    string `json:"file,omitempty"` // empty: no file is to blame
	Line    int    `json:"line,omitempty"` // 0: the file as a whole
	Option  string `json:"option,omitempty"`
	Message string `json:"message"`        // a sentence without the option's name in front; never holds a secret
	Hint    string `json:"hint,omitempty"` // what to write or type instead

	// Denied: whoever reads the configuration may not read a file of it. The daemon may.
	Denied bool `json:"-"`
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

// Denied returns the finding about a file that may not be read, after which the others mean little; nil: there is none.
func (f Findings) Denied() *Finding {
	if i := slices.IndexFunc(f, func(one Finding) bool { return one.Denied }); i >= 0 {
		return &f[i]
	}
	return nil
}

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
