package daemon

import (
	"context"
	"fmt"
	"strings"
	"time"

	"saltclusterd/fsync/ledger"
	"saltclusterd/fsync/roots"
)

// Items of the ledger of the roots.
const (
	itemRevision = "revision"
	itemDisk     = "content on disk"
)

// rootsLookTimeout bounds a look at the whole disk.
const rootsLookTimeout = 30 * time.Second

// rootsLedger is what is below this node's file_roots and pillar_roots now (verify).
func (s *service) rootsLedger() (ledger.Ledger, error) {
	if s.trees.off != "" {
		return ledger.Ledger{Off: s.trees.off}, nil
	}
	if err := s.m.rootsKept(); err != nil {
		return ledger.Ledger{}, err
	}
	ctx, cancel := context.WithTimeout(s.ctx, rootsLookTimeout)
	defer cancel()
	if _, err := s.trees.Sync(ctx, roots.SyncOptions{DryRun: true}); err != nil {
		return ledger.Ledger{}, fmt.Errorf("look at the roots: %w", err)
	}
	return rootsHeld(s.trees.Status()), nil
}

// rootsHeld is what a master finds. Live has a slot that is left alone as the cluster has it, for it is no deletion; but the master
// does not have that.
func rootsHeld(st roots.Status) ledger.Ledger {
	l := rootsItems(st.Base, st.Live)
	var without []string
	for _, slot := range st.Slots {
		if slot.Lacking {
			without = append(without, slot.Name.String())
		}
	}
	if len(without) > 0 {
		text := l.Items[itemDisk] + " without " + strings.Join(without, ", ")
		l.Items[itemDisk] = text[:min(len(text), ledger.MaxText)]
	}
	return l
}

// rootsDecided is what the cluster has in force.
func (s *service) rootsDecided() ledger.Ledger {
	head, ok := rootsLog{s.m}.Head()
	if !ok {
		return ledger.Ledger{Off: "nothing is in force yet"}
	}
	return rootsItems(head.Number, head.Root)
}

func rootsItems(number uint64, root roots.Hash) ledger.Ledger {
	return ledger.Ledger{Items: map[string]string{itemRevision: fmt.Sprint(number), itemDisk: root.String()}}
}
