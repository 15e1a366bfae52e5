package keydir

import (
	"fmt"
	"testing"
	"time"

	"saltclusterd/consensus/state"
)

var (
	none     = entry{}
	pendA    = entry{state.KeyPending, "A"}
	accA     = entry{state.KeyAccepted, "A"}
	rejA     = entry{state.KeyRejected, "A"}
	pendB    = entry{state.KeyPending, "B"}
	accB     = entry{state.KeyAccepted, "B"}
	everyOne = []entry{none, pendA, accA, rejA, pendB, accB}
)

func TestDecide(t *testing.T) {
	deleted := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		name string
		k    keyState
		want step
	}{
		{"nothing anywhere", keyState{current: true}, step{}},
		{"at rest", keyState{disk: accA, base: based{accA, 5}, cons: accA, current: true}, step{}},
		{"registered here", keyState{disk: pendA, current: true}, step{verdict: propose, want: pendA}},
		{"accepted here", keyState{disk: accA, base: based{pendA, 5}, cons: pendA, current: true},
			step{verdict: propose, want: accA}},
		{"deleted here", keyState{base: based{accA, 5}, cons: accA, current: true}, step{verdict: propose, want: none}},
		{"key replaced here", keyState{disk: accB, base: based{accA, 5}, cons: accA, current: true},
			step{verdict: propose, want: accB}},
		{"accepted elsewhere", keyState{disk: pendA, base: based{pendA, 5}, cons: accA}, step{verdict: write, want: accA}},
		{"deleted elsewhere", keyState{disk: accA, base: based{accA, 5}}, step{verdict: write, want: none}},
		{"registered elsewhere", keyState{cons: pendA}, step{verdict: write, want: pendA}},
		{"accepted here and there", keyState{disk: accA, base: based{pendA, 5}, cons: accA}, step{verdict: adopt, want: accA}},
		{"accepted here and there, and still pending here", keyState{disk: accA, twice: true, base: based{pendA, 5}, cons: accA},
			step{verdict: write, want: accA}},
		{"deleted here and there", keyState{base: based{pendA, 5}}, step{verdict: adopt, want: none}},
		{"accepted here, rejected there", keyState{disk: accA, base: based{pendA, 5}, cons: rejA},
			step{verdict: write, want: rejA, overruled: true, why: "changed elsewhere meanwhile"}},
		{"accepted here, deleted there", keyState{disk: accA, base: based{pendA, 5}},
			step{verdict: write, want: none, overruled: true, why: "changed elsewhere meanwhile"}},
		{"deleted here, rejected there", keyState{base: based{accA, 5}, cons: rejA},
			step{verdict: write, want: rejA, why: "changed elsewhere meanwhile"}},
		{"two keys for a new id", keyState{disk: pendB, cons: pendA},
			step{verdict: write, want: pendA, overruled: true, deny: true, why: "changed elsewhere meanwhile"}},
		{"accepted here, where nobody has noted that it was pending", keyState{disk: accA, cons: pendA, first: true},
			step{verdict: propose, want: accA}},
		{"rejected here, where nobody has noted that it was pending", keyState{disk: rejA, cons: pendA, first: true},
			step{verdict: propose, want: rejA}},
		{"accepted there, where nobody has noted that it was pending", keyState{disk: pendA, cons: accA},
			step{verdict: write, want: accA}},
		{"rejected there, where nobody has noted that it was pending", keyState{disk: pendA, cons: rejA},
			step{verdict: write, want: rejA}},
		{"accepted here, and pending once more after a deletion", keyState{disk: accA, cons: pendA},
			step{verdict: write, want: pendA, overruled: true, why: "changed elsewhere meanwhile"}},
		{"accepted here, where its deletion was noted",
			keyState{disk: accA, base: based{none, 5}, hasBase: true, cons: pendA, first: true},
			step{verdict: write, want: pendA, overruled: true, why: "changed elsewhere meanwhile"}},
		{"another key accepted here than is pending there", keyState{disk: accB, cons: pendA, first: true},
			step{verdict: write, want: pendA, overruled: true, deny: true, why: "changed elsewhere meanwhile"}},
		{"the old key against a new one", keyState{disk: rejA, base: based{accA, 5}, cons: accB},
			step{verdict: write, want: accB, overruled: true, why: "changed elsewhere meanwhile"}},
		{"new file for a deleted key", keyState{disk: pendA, current: true, deleted: deleted,
			modified: deleted.Add(-time.Second)},
			step{verdict: propose, want: pendA}},
		{"old file for a deleted key", keyState{disk: accA, current: true, deleted: deleted, modified: deleted.Add(-time.Minute)},
			step{verdict: write, want: none, overruled: true, why: "older than its deletion"}},
		{"another key is accepted, that was denied before", keyState{disk: accB, base: based{accA, 5}, cons: accA, current: true,
			decided: deleted, modified: deleted.Add(-time.Minute), denied: "B"}, step{verdict: propose, want: accB}},
		{"another key that is older than the decision", keyState{disk: accB, base: based{accA, 5}, cons: accA, current: true,
			decided: deleted, modified: deleted.Add(-time.Minute)},
			step{verdict: write, want: accA, overruled: true, why: "older than the decision about the present key"}},
		{"accepted here, by a move", keyState{disk: accA, base: based{pendA, 5}, cons: pendA, current: true, again: true,
			decided: deleted, modified: deleted.Add(-time.Minute)}, step{verdict: propose, want: accA}},
		{"an old file beside the key that came again after its deletion",
			keyState{disk: accA, base: based{pendA, 5}, cons: pendA, current: true, again: true, twice: true,
				decided: deleted, modified: deleted.Add(-time.Minute)},
			step{verdict: write, want: pendA, overruled: true, why: "older than the decision about the present key"}},
		{"in two directories", keyState{disk: accA, twice: true, base: based{accA, 5}, cons: accA, current: true},
			step{verdict: write, want: accA, why: "in several directories"}},
		{"half a file", keyState{garbage: true, base: based{accA, 5}, cons: accA, current: true},
			step{verdict: unclear, want: accA}},
		{"half a file of nobody", keyState{garbage: true, current: true}, step{verdict: unclear}},
		{"half a file, changed elsewhere", keyState{garbage: true, base: based{pendA, 5}, cons: accA},
			step{verdict: write, want: accA, overruled: true, why: "no key in the file"}},

		{"joining: known, same", keyState{stale: joining, disk: accA, cons: accA, known: true}, step{verdict: adopt, want: accA}},
		{"joining: known, other", keyState{stale: joining, disk: accB, cons: accA, known: true},
			step{verdict: write, want: accA, overruled: true, why: "the cluster has it already"}},
		{"joining: known, missing", keyState{stale: joining, cons: accA, known: true},
			step{verdict: write, want: accA, why: "the cluster has it already"}},
		{"joining: deleted", keyState{stale: joining, disk: accA, known: true},
			step{verdict: write, want: none, overruled: true, why: "the cluster has it already"}},
		{"joining: unknown and accepted", keyState{stale: joining, disk: accA},
			step{verdict: propose, want: pendA, why: "this directory is new to the cluster"}},
		{"joining: unknown and rejected", keyState{stale: joining, disk: rejA},
			step{verdict: propose, want: rejA, why: "this directory is new to the cluster"}},
		{"joining: garbage of a known one", keyState{stale: joining, garbage: true, cons: accA, known: true},
			step{verdict: write, want: accA, overruled: true, why: "the cluster has it already"}},
		{"joining: garbage of nobody", keyState{stale: joining, garbage: true}, step{verdict: unclear}},
		{"founding: as it is", keyState{stale: found, disk: accA}, step{verdict: propose, want: accA}},
		{"founding: the minion was faster", keyState{stale: found, disk: accA, cons: pendA, known: true},
			step{verdict: propose, want: accA}},
		{"founding: another one was faster", keyState{stale: found, disk: accA, cons: pendB, known: true},
			step{verdict: propose, want: accA}},
		{"founding: rejected, and came again", keyState{stale: found, disk: rejA, cons: pendA, known: true},
			step{verdict: propose, want: rejA}},
		{"founding: pending here, accepted there", keyState{stale: found, disk: pendA, cons: accA, known: true},
			step{verdict: write, want: accA, overruled: true, why: "the cluster has it already"}},
		{"founding: deleted meanwhile, and came again",
			keyState{stale: found, disk: accA, base: based{accA, 5}, hasBase: true, cons: pendA, known: true},
			step{verdict: write, want: pendA, overruled: true, why: "the cluster has it already"}},
	} {
		if got := decideStep(c.k); got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

// TestDecideEverywhere goes through every combination and checks what must hold in all of them.
func TestDecideEverywhere(t *testing.T) {
	n := 0
	for _, disk := range everyOne {
		for _, base := range everyOne {
			for _, cons := range everyOne {
				for flags := range 1 << 7 {
					for _, stale := range []staleness{fresh, joining, found} {
						k := keyState{
							disk: disk, base: based{base, 5}, hasBase: flags&32 == 0, cons: cons, stale: stale,
							current: flags&1 != 0, garbage: flags&2 != 0, twice: flags&4 != 0, known: flags&8 != 0 || cons != none,
							first: flags&64 != 0 && cons != none,
						}
						if flags&16 != 0 {
							k.deleted = time.Unix(1, 0)
						}
						if !k.hasBase && base != none {
							continue
						}
						if k.current && stale == fresh && base != cons {
							continue // cannot be: base is what consensus has at that revision
						}
						if k.garbage && disk != none {
							continue // what is no key is not a key
						}
						n++
						checkStep(t, k, decideStep(k))
					}
				}
			}
		}
	}
	if n < 1000 {
		t.Errorf("%d cases only", n)
	}
}

func checkStep(t *testing.T, k keyState, s step) {
	t.Helper()
	bad := func(format string, args ...any) {
		t.Errorf("%+v → %+v: %s", k, s, fmt.Sprintf(format, args...))
	}
	switch s.verdict {
	case leave:
		if k.garbage || k.disk != k.cons {
			bad("left, though disk and consensus differ")
		}
	case adopt:
		if k.disk != k.cons || k.garbage || s.want != k.cons {
			bad("adopted, though disk and consensus differ")
		}
	case write:
		if s.want != k.cons {
			bad("written is what consensus does not have")
		}
		same := k.stale == fresh && !k.hasBase && k.disk.State == state.KeyPending && k.disk.Print == k.cons.Print
		if k.disk != none && k.disk != k.cons && k.disk != k.base.entry && !s.overruled && !same {
			bad("an edit is overwritten without a copy")
		}
	case propose:
		undecided := !k.hasBase && k.first && k.cons.State == state.KeyPending && k.disk.Print == k.cons.Print &&
			k.disk.isDecided()
		if k.stale == fresh && !k.current && !undecided {
			bad("proposed on an old revision")
		}
		if k.garbage {
			bad("garbage is proposed")
		}
		faster := k.stale == found && !k.hasBase && k.cons.State == state.KeyPending && k.disk.isDecided()
		if k.stale != fresh && k.known && !faster {
			bad("a stale disk proposes what consensus knows")
		}
		if k.stale == joining && s.want.State == state.KeyAccepted {
			bad("a newcomer proposes accepted keys")
		}
		if k.stale == fresh && s.want != k.disk {
			bad("proposed is what disk does not have")
		}
	}
	if s.deny && (k.disk.Print == k.cons.Print || k.cons == none) {
		bad("denied without another key")
	}
}
