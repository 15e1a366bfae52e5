package keydir

import (
	"testing"
	"time"

	"saltclusterd/consensus/state"
)

// Files bear the time of this host, whose clock may be wrong, and decisions that of the cluster.
func TestMachine_WrongClock(t *testing.T) {
	for _, ahead := range []time.Duration{0, 30 * time.Second, time.Hour, -30 * time.Second, -time.Hour} {
		for _, c := range []struct {
			name string
			age  time.Duration // of the file, when the key was deleted
			news bool
		}{
			{"a minion comes again after its deletion", -time.Second, true},
			{"a file comes back from a backup", 20 * time.Second, false},
		} {
			t.Run(ahead.String()+" ahead: "+c.name, func(t *testing.T) {
				log, deleted := newShared(t), time.Now()
				for _, to := range []state.KeyState{state.KeyAccepted, state.KeyDeleted} {
					set := state.KeySet{ID: "web", State: to, BaseRev: log.View().KeyRev("web"),
						Audit: state.Audit{By: "m2", At: deleted.UnixMilli(), Cause: "test"}}
					if to == state.KeyAccepted {
						set.Pub = keyTexts()[0]
					}
					if r, err := log.Propose(t.Context(), []state.Command{set}); err != nil || r[0].Err() != nil {
						t.Fatal(r, err)
					}
				}
				m := newMachine("m1", Timing{}, newBase(fresh))
				m.base.Seen, m.clockAhead = log.View().Rev(), ahead
				here := deleted.Add(ahead)
				look := func(string) diskState {
					return diskState{key: finding{entry: entry{state.KeyPending, printOf(keyTexts()[1])},
						modified: here.Add(-c.age)}}
				}
				m.planKeys(here.Add(2*time.Second), log.View(), look, []string{"web"})
				p := m.planKeys(here.Add(4*time.Second), log.View(), look, []string{"web"})
				if (len(p.proposals) == 1) != c.news || (len(p.writes) == 1) == c.news {
					t.Errorf("%+v", p)
				}
			})
		}
	}
}

// What other nodes have lost counts whatever this host's clock shows.
func TestLosses_WrongClock(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		m := newLossMachine(t, 20, 10)
		m.clockAhead = ahead
		m.step(ahead)
		for _, id := range []string{"m00", "m01", "m02"} {
			m.decide(id, state.KeyDeleted, causeKeyFile)
		}
		m.step(time.Second, "m03")
		if p := m.step(time.Second); len(p.proposals) > 0 || len(p.writes) != 1 {
			t.Errorf("%s ahead: a fourth of 20 keys goes: %+v", ahead, p)
		}
	}
}

// A minion that comes again at once stays, on a host whose clock is half a minute behind.
func TestDir_WrongClock(t *testing.T) {
	node := newTestNode(t, "m1", newShared(t))
	node.now = func() time.Time { return time.Now().Add(30 * time.Second) }
	node.found = true
	node.put(acceptedDir, "web", keyTexts()[0])
	node.start()
	await(t, files{"minions/web": keyTexts()[0]}, node)
	node.synced()
	node.remove(acceptedDir, "web")
	await(t, files{}, node)
	node.synced()
	node.put(pendingDir, "web", keyTexts()[1])
	await(t, files{"minions_pre/web": keyTexts()[1]}, node)
}
