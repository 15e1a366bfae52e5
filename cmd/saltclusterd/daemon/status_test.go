package daemon

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"saltclusterd/sidecar/adminapi"
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
				strings.Contains(p.Hint, "systemctl start salt-master")
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
