package daemon

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/adminapi"
)

// TestHubConfig wants publications to leave out whose key was deleted a moment ago, and to be withheld by a node that
// has known for too long that it is behind.
func TestHubConfig(t *testing.T) {
	t.Parallel()
	n := startNode(t, "a", t.TempDir())
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "serving", serves(n))
	acceptKey(t, n, "web", mustKey(t))
	m := n.tenure.Current()
	results, err := m.Consensus.Propose(t.Context(), state.KeySet{
		ID: "web", State: state.KeyDeleted, BaseRev: m.Consensus.View().KeyRev("web"), Audit: m.Audit("test"),
	})
	if err == nil {
		err = results[0].Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg := m.service().hubConfig(nil)
	if out := cfg.LeaveOut([]string{"db"}, time.Second); !slices.Equal(out, []string{"db", "web"}) {
		t.Errorf("left out: %q", out)
	}
	if cfg.Withhold() {
		t.Error("a node that is not behind withholds publications")
	}
	if name := runtime.FuncForPC(reflect.ValueOf(cfg.Withhold).Pointer()).Name(); !strings.Contains(name, "TooFarBehind") {
		t.Errorf("publications are withheld by %s", name)
	}
}
