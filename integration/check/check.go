package check

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// T is a test: one of package testing, or of rapid.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// Equal compares two values.
func Equal[V comparable](t T, got, want V, about ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s%s, want %s", subject(about), show(got), show(want))
	}
}

// EqualSlices compares two slices; an empty one equals nil.
func EqualSlices[S ~[]E, E comparable](t T, got, want S, about ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s%s, want %s", subject(about), show(got), show(want))
	}
}

// DeepEqual compares two values as package reflect does.
func DeepEqual(t T, got, want any, about ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s%s, want %s", subject(about), show(got), show(want))
	}
}

// ErrorIs compares an error with the one that it should be or wrap.
func ErrorIs(t T, err, want error, about ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s%v, want %v", subject(about), err, want)
	}
}

// NoError reports an error.
func NoError(t T, err error, about ...any) {
	t.Helper()
	if err != nil {
		t.Errorf("%s%v", subject(about), err)
	}
}

// Contains looks for a part of a text.
func Contains(t T, text, part string, about ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s%q is not in:\n%s", subject(about), part, text)
	}
}

func subject(about []any) string {
	if len(about) == 0 {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintln(about...), "\n") + ": "
}

func show(value any) string {
	switch value.(type) {
	case string, []string, []byte:
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprintf("%+v", value)
}
