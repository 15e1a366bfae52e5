package rootsadmin

import (
	"strings"
	"testing"

	"saltclusterd/fsync/ledger"
	"saltclusterd/fsync/roots"
)

func TestLedger(t *testing.T) {
	const decided = "(cluster)" // as verify calls it
	off := &Roots{off: "cluster_roots_sync is off"}
	if l, err := off.Ledger(t.Context()); err != nil || l.Off == "" {
		t.Errorf("%+v, %v", l, err)
	}
	slot := roots.SlotStatus{Name: roots.SlotName{Kind: "file", Env: "base"}, Unavailable: "missing"}
	whole := roots.Status{Base: 3, Live: roots.Hash{1}, Slots: []roots.SlotStatus{slot}}
	lacks := roots.Status{Base: 3, Live: roots.Hash{1}}
	slot.Lacking = true
	lacks.Slots = []roots.SlotStatus{slot}
	decided3 := ledgerItems(3, roots.Hash{1})
	if d := ledger.Compare(map[string]ledger.Ledger{"m1": ledgerOf(whole), decided: decided3}); len(d) > 0 {
		t.Errorf("a directory with nothing in it: %+v", d)
	}
	d := ledger.Compare(map[string]ledger.Ledger{"m1": ledgerOf(whole), "m2": ledgerOf(lacks), decided: decided3})
	if len(d) != 1 || !strings.HasSuffix(d[0].Texts["m2"], "without file:base:0") ||
		d[0].Texts["m1"] != d[0].Texts[decided] {
		t.Errorf("a directory that is left alone: %+v", d)
	}
	a, b := ledgerItems(3, roots.Hash{1}), ledgerItems(3, roots.Hash{2})
	if _, err := a.Encode(); err != nil {
		t.Error(err)
	}
	if d := ledger.Compare(map[string]ledger.Ledger{"m1": a, "m2": b, decided: a}); len(d) != 1 || d[0].Item != itemDisk {
		t.Errorf("%+v", d)
	}
}
