package daemon

import (
	"testing"

	"saltclusterd/sidecar/adminapi"
)

func TestMinionVerbs_NewNode(t *testing.T) {
	n := startNode(t, "m1", t.TempDir())
	verbs := n.minionVerbs()
	if _, err := verbs.Presence(t.Context()); adminapi.CodeOf(err) != adminapi.CodeNotMember {
		t.Errorf("presence without a cluster: %v", err)
	}
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, quiet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "presence", func() error {
		p, err := verbs.Presence(t.Context())
		if err == nil && (len(p.Present) != 0 || p.From != "m1" || len(p.Missing) != 0) {
			t.Errorf("presence is %+v", p)
		}
		return err
	})
}
