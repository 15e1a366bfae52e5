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
	if len(list) != maxReasons || len(list[0].Message) > maxReasonText || len(list[0].Hint) > maxReasonText || list[0].Check != "master" {
		t.Errorf("%d reasons, the first with %d bytes", len(list), len(list[0].Message))
	}
}
