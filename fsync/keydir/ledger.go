package keydir

import (
	"log/slog"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/ledger"
)

// Ledger tells which keys lie in the local master's pki_dir: their state and the beginning of their print by minion.
func (d *Dir) Ledger() (ledger.Ledger, error) {
	disk := newDisk(d.cfg.PKIDir, &invalidEntries{log: slog.New(slog.DiscardHandler)})
	if err := disk.scanAll(); err != nil {
		return ledger.Ledger{}, err
	}
	out := ledger.Ledger{Items: map[string]string{}}
	for p := range places {
		for id, f := range disk.files[p] {
			switch name := ledgerName(id, p == deniedDir); {
			case p == deniedDir:
				out.Items[name] = f.print.short()
			case out.Items[name] != "": // rejected counts before accepted, accepted before pending
				out.Items[name] += ", " + p.String() + " too"
			default:
				out.Items[name] = p.String() + " " + f.print.short()
			}
		}
	}
	return out, nil
}

// Decided tells the same of what consensus has decided.
func (d *Dir) Decided() ledger.Ledger {
	out, view := ledger.Ledger{Items: map[string]string{}}, d.cfg.Log.View()
	view.Keys(func(k state.Key) bool {
		out.Items[ledgerName(k.ID, false)] = placeOf(k.State).String() + " " + printOf(k.Pub).short()
		return true
	})
	for _, k := range view.DeniedKeys() {
		out.Items[ledgerName(k.ID, true)] = printOf(k.Pub).short()
	}
	return out
}

func ledgerName(id string, denied bool) string {
	if denied {
		return id + " (denied)"
	}
	return id
}

// short is enough of a print to tell two keys apart.
func (p keyPrint) short() string { return string(p[:min(12, len(p))]) }
