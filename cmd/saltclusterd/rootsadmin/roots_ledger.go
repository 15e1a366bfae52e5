package rootsadmin

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

// scanTimeout bounds a scan of the whole disk.
const scanTimeout = 30 * time.Second

// Ledger reads what is below this node's file_roots and pillar_roots now (verify).
func (r *Roots) Ledger(ctx context.Context) (ledger.Ledger, error) {
	if r.off != "" {
		return ledger.Ledger{Off: r.off}, nil
	}
	if err := r.checkUsable(); err != nil {
		return ledger.Ledger{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	if _, err := r.engine.Sync(ctx, roots.SyncOptions{DryRun: true}); err != nil {
		return ledger.Ledger{}, fmt.Errorf("read the roots: %w", err)
	}
	return ledgerOf(r.engine.Status()), nil
}

// ledgerOf returns what the master finds. Live has a slot that is left alone as the cluster has it, because it was not
// deleted; the master does not have it.
func ledgerOf(st roots.Status) ledger.Ledger {
	l := ledgerItems(st.Base, st.Live)
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

// Decided returns what the cluster has in force.
func (r *Roots) Decided() ledger.Ledger {
	head, ok := headOf(r.cfg.Log.View())
	if !ok {
		return ledger.Ledger{Off: "no revision is in force yet"}
	}
	return ledgerItems(head.Number, head.Root)
}

func ledgerItems(number uint64, root roots.Hash) ledger.Ledger {
	return ledger.Ledger{Items: map[string]string{itemRevision: fmt.Sprint(number), itemDisk: root.String()}}
}
