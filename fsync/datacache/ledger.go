package datacache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"

	"saltclusterd/fsync/ledger"
)

// part says which part of a record a ledger is about.
type part func(d data) []byte

func mainOf(d data) []byte { return d.main }

// pillarOf is the pillar that a master of every version has: the first one.
func pillarOf(d data) []byte {
	if len(d.pillars) == 0 {
		return nil
	}
	return d.pillars[0].raw
}

// Ledger tells what the local master has on disk: hashes of grains or mines by minion.
func (s *Store) Ledger() (ledger.Ledger, error) { return s.ledger(mainOf) }

// PillarLedger tells the same of pillars.
func (s *Store) PillarLedger() (ledger.Ledger, error) {
	if reason := s.cfg.Master.pillarsOff(); reason != "" && s.Off() == "" {
		return ledger.Ledger{Off: reason}, nil
	}
	return s.ledger(pillarOf)
}

func (s *Store) ledger(of part) (ledger.Ledger, error) {
	if s.Off() != "" {
		return ledger.Ledger{Off: s.Off()}, nil
	}
	root, err := s.disk.root()
	if errors.Is(err, fs.ErrNotExist) { // the master has never run
		return ledger.Ledger{Items: map[string]string{}}, nil
	}
	if err != nil {
		return ledger.Ledger{}, err
	}
	defer root.Close()
	ids, err := s.layout.ids(root, s.cfg.Keys.Known)
	if err != nil {
		return ledger.Ledger{}, err
	}
	out := ledger.Ledger{Items: map[string]string{}}
	for _, id := range ids {
		if _, ok := s.cfg.Keys.Accepted(id); !ok {
			continue // such data are not carried
		}
		if sum := s.sum(root, id, of); sum != "" {
			out.Items[id] = sum
		}
	}
	return out, nil
}

// sum hashes a part of a minion's data; empty: it is not there.
func (s *Store) sum(root *os.Root, id string, of part) string {
	turn := s.turns.of(id)
	turn.Lock()
	defer turn.Unlock()
	names := s.layout.names(id)
	defer s.reading(look(root, names))()
	files, err := read(root, names)
	if err != nil {
		return ""
	}
	d, err := s.layout.parse(id, files)
	raw := of(d)
	if err != nil || len(raw) == 0 {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
