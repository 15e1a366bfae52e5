package wording

import (
	"testing"

	"saltclusterd/integration/check"
)

func TestPlural(t *testing.T) {
	for want, got := range map[string]string{
		"0 nodes": Plural(0, "node"), "1 node": Plural(1, "node"), "2 nodes": Plural(uint64(2), "node"),
		"is": Choose(1, "is", "are"), "are": Choose(0, "is", "are"),
	} {
		check.Equal(t, got, want)
	}
}

func TestEnumerate(t *testing.T) {
	for want, names := range map[string][]string{
		"": nil, "m1": {"m1"}, "m1 and m2": {"m1", "m2"}, "m1, m2 and m3": {"m1", "m2", "m3"},
	} {
		check.Equal(t, Enumerate(names), want, names)
	}
}
