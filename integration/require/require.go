package require

// T is a test: one of package testing, or of rapid.
type T interface {
	Helper()
	Fatal(args ...any)
}

// NoError ends the test unless err is nil.
func NoError(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
