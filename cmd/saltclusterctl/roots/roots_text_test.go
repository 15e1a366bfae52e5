package roots

import (
	"strings"
	"testing"

	"saltclusterd/sidecar/adminapi"
)

// A node that waits between two tries is not just idle.
func TestRootsNodeText_Behind(t *testing.T) {
	n := adminapi.RootsNode{Phase: "idle", Problems: []string{"the disk is too full"}}
	if text, _ := rootsNodeText(n); !strings.Contains(text, "below") {
		t.Errorf("with a problem: %q", text)
	}
	n.Phase = "fetch"
	if text, _ := rootsNodeText(n); text != "behind: fetch" {
		t.Errorf("at work: %q", text)
	}
}
