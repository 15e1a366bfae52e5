package daemon

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/sidecar/adminapi"
)

// TestRemove_SeveralAtOnce removes most nodes of a cluster at the same time. The nodes that are left still decide. A
// node that was removed while it removed another one reports neither success nor a lost majority.
func TestRemove_SeveralAtOnce(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		n    int
		by   []int // the nodes that are asked to remove the last one, the one before, ...
		left []int // how many may be left
	}{
		{"three of five, two operators", 5, []int{0, 1, 0}, []int{2}},
		// One, when the leader had the second's request before its removal.
		{"two of three, each by the other", 3, []int{1, 2}, []int{1, 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var dirs []string
			for range tc.n {
				dirs = append(dirs, t.TempDir())
			}
			nodes := cluster(t, dirs...)
			done := make(chan error, len(tc.by))
			for i, by := range tc.by {
				go func() { done <- remove(t, nodes[by], string(nodes[tc.n-1-i].id), false) }()
			}
			for range tc.by {
				if err := <-done; err != nil && adminapi.CodeOf(err) != adminapi.CodeNotMember {
					t.Errorf("remove: %v (%s)", err, adminapi.HintOf(err))
				}
			}
			eventually(t, "the nodes that are left decide", func() error {
				if !nodes[0].tenure.Current().Consensus.Status().HasQuorum {
					return errors.New("a has no quorum")
				}
				return nil
			})
			var ids []node.ID
			eventually(t, "voters are members", func() error {
				ids = nil
				v := nodes[0].tenure.Current().Consensus.View()
				for _, m := range v.Members() {
					ids = append(ids, m.ID)
				}
				for _, id := range nodes[0].tenure.Current().Consensus.Status().Voters {
					if _, ok := v.Member(id); !ok {
						return fmt.Errorf("%s votes and is no member", id)
					}
				}
				return nil
			})
			if !slices.Contains(tc.left, len(ids)) {
				t.Errorf("left: %v", ids)
			}
			check.NoError(t, nodes[0].tenure.Current().drains.Decide(bounded(t), "a", false))
		})
	}
}
