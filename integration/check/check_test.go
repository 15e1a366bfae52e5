package check

import (
	"fmt"
	"io"
	"testing"
)

// recorder is a test that keeps what it would report.
type recorder []string

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { *r = append(*r, fmt.Sprintf(format, args...)) }

func TestReports(t *testing.T) {
	var r recorder
	Equal(&r, 1, 1)
	EqualSlices(&r, nil, []string{})
	DeepEqual(&r, []int{1}, []int{1})
	ErrorIs(&r, fmt.Errorf("read: %w", io.EOF), io.EOF)
	NoError(&r, nil)
	Contains(&r, "a b", "b")
	EqualSlices(t, r, nil, "what holds is reported")

	Equal(&r, "a", "b", "minion", 7)
	EqualSlices(&r, []string{"a"}, nil)
	DeepEqual(&r, []int{1}, nil)
	ErrorIs(&r, nil, io.EOF, "closed")
	NoError(&r, io.EOF, "read")
	Contains(&r, "a b", "c")
	EqualSlices(t, r, recorder{`minion 7: "a", want "b"`, `["a"], want []`, "[1], want <nil>", "closed: <nil>, want EOF",
		"read: EOF", "\"c\" is not in:\na b"})
}
