package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/memberlist"
)

// KeySize is the length of a gossip key in bytes: AES-256.
const KeySize = 32

func checkKeys(keys [][]byte) error {
	if len(keys) == 0 {
		return errors.New("no key")
	}
	for i, k := range keys {
		if len(k) != KeySize {
			return fmt.Errorf("key %d has %d bytes instead of %d", i+1, len(k), KeySize)
		}
	}
	return nil
}

// SetKeys makes keys the whole keyring: the first one encrypts, all decrypt.
func (g *Gossip) SetKeys(keys [][]byte) error {
	if err := checkKeys(keys); err != nil {
		return fmt.Errorf("set gossip keys: %w", err)
	}
	g.ringMu.Lock()
	defer g.ringMu.Unlock()
	if err := setRing(g.ring, keys); err != nil {
		return fmt.Errorf("set gossip keys: %w", err)
	}
	g.log.Info("gossip keys set", "count", len(keys))
	g.Nudge()
	return nil
}

// setRing changes a ring which memberlist reads without a lock: it walks over slices it got from GetKeys, and RemoveKey
// moves keys within those very slices unless it removes the last one. So only the last one is ever removed, after
// bringing wanted keys from there to the front.
func setRing(ring *memberlist.Keyring, keys [][]byte) error {
	wanted := func(k []byte) bool {
		return slices.ContainsFunc(keys, func(w []byte) bool { return bytes.Equal(k, w) })
	}
	for _, k := range keys {
		if err := ring.AddKey(slices.Clone(k)); err != nil {
			return err
		}
	}
	if err := ring.UseKey(keys[0]); err != nil {
		return err
	}
	for {
		have := ring.GetKeys()
		if !slices.ContainsFunc(have, func(k []byte) bool { return !wanted(k) }) {
			break
		}
		last := have[len(have)-1]
		change := ring.RemoveKey
		if wanted(last) {
			change = ring.UseKey
		}
		if err := change(last); err != nil {
			return err
		}
	}
	return ring.UseKey(keys[0])
}
