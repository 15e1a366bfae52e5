package daemon

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltlog"
)

// What is wrong on another node is told here, with what to do; nobody's salt-master runs.
func TestStatusTellsOfOthers(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, t.TempDir(), t.TempDir())
	a, b := nodes[0], nodes[1]
	eventually(t, "the other one's salt-master to be missed", func() error {
		st, err := a.Status(t.Context())
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(st.Problems, func(p adminapi.Problem) bool {
			return p.Node == string(b.id) && p.Level == adminapi.LevelWarn && strings.Contains(p.Message, "salt-master") &&
				strings.Contains(p.Hint, wording.HostServices().Adapt("systemctl start salt-master"))
		}) {
			return fmt.Errorf("%+v", st.Problems)
		}
		i := slices.IndexFunc(st.Members, func(m adminapi.Member) bool { return m.ID == string(b.id) })
		if m := st.Members[i]; *m.Ready || !slices.Contains(m.Reasons, "master") {
			return fmt.Errorf("its row: %+v", m)
		}
		return nil
	})
}

// Two minions with one id are in the status.
func TestStatus_DifferingReturns(t *testing.T) {
	t.Parallel()
	n := startNode(t, "m1", t.TempDir())
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	n.tenure.Current().service().master.Log.Differs("web1", "20261121040506000001", saltlog.Outcome{}, saltlog.Outcome{})
	st, err := n.Status(t.Context())
	if err != nil || !slices.ContainsFunc(st.Problems, func(p adminapi.Problem) bool {
		return strings.Contains(p.Message, "web1 (job 20261121040506000001)")
	}) {
		t.Errorf("problems %+v, %v", st.Problems, err)
	}
}
