package keydir

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// TestStorm edits three nodes at once, the way the masters of 3006 and 3008 do, while nodes restart and the quorum
// comes and goes. In the end all have what consensus has.
func TestStorm(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	log := newShared(t)
	var nodes []*testNode
	for i := range 3 {
		nodes = append(nodes, newTestNode(t, fmt.Sprint("m", i+1), log).start())
	}
	for range 250 {
		n := nodes[rnd.IntN(len(nodes))]
		storm(t, n, rnd)
		if rnd.IntN(4) == 0 {
			time.Sleep(time.Duration(rnd.IntN(60)) * time.Millisecond)
		}
	}
	log.quorum(true)
	for _, n := range nodes {
		if n.dir == nil {
			n.start()
		}
	}
	patience.WaitFor(t, "all nodes have what consensus has", func() bool {
		want := consensusFiles(log.View())
		for _, n := range nodes {
			if !maps.Equal(n.files(), want) {
				return false
			}
		}
		return true
	})
}

func storm(t *testing.T, n *testNode, rnd *rand.Rand) {
	k := keyTexts()
	id := []string{"web", "db", "mail", "log"}[rnd.IntN(4)]
	text := k[rnd.IntN(len(k))]
	from, to := place(rnd.IntN(int(places))), place(rnd.IntN(int(places)))
	switch rnd.IntN(12) {
	case 0, 1, 2: // 3006: fills the file in place
		if f, err := os.Create(n.path(pendingDir, id)); err == nil {
			_, _ = f.WriteString(text[:rnd.IntN(len(text))])
			_ = f.Close()
			n.put(pendingDir, id, text)
		}
	case 3, 4: // 3008: takes all away, then renames a temporary file
		for _, p := range keyPlaces {
			_ = os.Remove(n.path(p, id))
		}
		temp := n.path(acceptedDir, fmt.Sprintf("tmp%08x", rnd.Uint32()))
		require.NoError(t, os.WriteFile(temp, []byte(text), 0o600))
		require.NoError(t, os.Rename(temp, n.path(acceptedDir, id)))
	case 5, 6, 7: // salt-key of 3006 and 3007
		_ = os.Rename(n.path(from, id), n.path(to, id))
	case 8, 9:
		_ = os.Remove(n.path(from, id))
	case 10:
		n.log.quorum(rnd.IntN(2) == 0)
	case 11:
		if n.dir == nil {
			n.open()
		} else if rnd.IntN(2) == 0 {
			n.stop()
		}
	}
}
