package tokens

import (
	"errors"
	"io/fs"

	"saltclusterd/fsync/ledger"
)

// Ledger tells what the local master has on disk: hashes of tokens that have not expired, by the first bytes of their
// prints.
func (s *Store) Ledger() (ledger.Ledger, error) {
	if s.Off() != "" {
		return ledger.Ledger{Off: s.Off()}, nil
	}
	root, err := s.disk.openRoot()
	if errors.Is(err, fs.ErrNotExist) { // the master has never run
		return ledger.Ledger{Items: map[string]string{}}, nil
	}
	if err != nil {
		return ledger.Ledger{}, err
	}
	defer root.Close()
	all, err := s.disk.listTokens(root)
	if err != nil {
		return ledger.Ledger{}, err
	}
	out := ledger.Ledger{Items: map[string]string{}}
	for _, token := range all {
		data, expire, err := s.disk.readToken(root, token)
		if err != nil || (entry{expire: expire}).isExpired(s.cfg.Now()) {
			continue
		}
		out.Items[fingerprintOf(token).short()] = sumOf(data)
	}
	return out, nil
}
