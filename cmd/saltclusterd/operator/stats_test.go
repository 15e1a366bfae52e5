package operator

import (
	"slices"
	"strings"
	"testing"

	"saltclusterd/sidecar/adminapi"
)

func TestBoundReasons(t *testing.T) {
	long := strings.Repeat("ü", maxReasonText)
	list := boundReasons(slices.Repeat([]adminapi.Reason{{Check: "master", Message: long, Hint: long}}, 3*maxReasons))
	first := list[0]
	if len(list) != maxReasons || first.Check != "master" ||
		len(first.Message) > maxReasonText || len(first.Hint) > maxReasonText {
		t.Errorf("%d reasons, the first with %d bytes", len(list), len(first.Message))
	}
}
