package signin

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltcrypt"
)

// TestSealedOnce: what a minion is told again is not encrypted again, and never is one secret told in place of another.
func TestSealedOnce(t *testing.T) {
	minion, err := saltcrypt.GenerateMasterKey(1024)
	require.NoError(t, err)
	cache := newKeyCache(10)
	if _, err := cache.findKey("no key"); err == nil || cache.hasKey("no key") || cache.hasKey(minion.PublicText()) {
		t.Errorf("%v: what was not parsed is kept", err)
	}
	key, err := cache.findKey(minion.PublicText())
	if err != nil || !cache.hasKey(minion.PublicText()) {
		t.Fatal(err)
	}
	last := map[seal][]byte{}
	for i, step := range []struct {
		which      seal
		algo, text string
		again      bool
	}{
		{sealAES, saltcrypt.OAEPSHA1, "epoch 1", false},
		{sealAES, saltcrypt.OAEPSHA1, "epoch 1", true},
		{sealSession, saltcrypt.OAEPSHA1, "epoch 1", false},
		{sealSession, saltcrypt.OAEPSHA1, "session", false},
		{sealAES, saltcrypt.OAEPSHA1, "epoch 1", true},
		{sealAES, saltcrypt.OAEPSHA1, "epoch 2", false},
		{sealAES, saltcrypt.OAEPSHA1, "epoch 1", false},
		{sealAES, saltcrypt.OAEPSHA224, "epoch 1", false},
		{sealSession, saltcrypt.OAEPSHA1, "session", true},
	} {
		ct, err := key.encryptSecret(step.which, step.algo, step.text)
		require.NoError(t, err)
		if got, err := minion.DecryptOAEP(step.algo, ct); err != nil || string(got) != step.text {
			t.Errorf("step %d: %q, %v; want %q", i, got, err, step.text)
		}
		if again := bytes.Equal(ct, last[step.which]); again != step.again {
			t.Errorf("step %d: the same ciphertext: %v, want %v", i, again, step.again)
		}
		last[step.which] = ct
	}
	if _, err := key.encryptSecret(sealAES, "OAEP-MD5", "epoch 1"); err == nil {
		t.Error("sealed with an algorithm that Salt does not have")
	}
}

// TestKeyIsKeptOnce however its text is written: a stock master takes all of these for the same.
func TestKeyIsKeptOnce(t *testing.T) {
	minion, err := saltcrypt.GenerateMasterKey(1024)
	require.NoError(t, err)
	c := newKeyCache(10)
	first, err := c.findKey(minion.PublicText())
	require.NoError(t, err)
	for _, text := range []string{minion.PublicText() + "\n", "  " + minion.PublicText(),
		strings.ReplaceAll(minion.PublicText(), "\n", "\r\n")} {
		if key, err := c.findKey(text); err != nil || key != first || !c.hasKey(text) || len(c.keys) != 1 {
			t.Errorf("%q: %v, %d keys are kept", text, err, len(c.keys))
		}
	}
}

func TestKeyCacheIsBounded(t *testing.T) {
	c := newKeyCache(2)
	for i := range 4 {
		minion, err := saltcrypt.GenerateMasterKey(1024)
		require.NoError(t, err)
		for range 2 {
			if key, err := c.findKey(minion.PublicText()); err != nil || !key.Equal(minion.Public()) {
				t.Fatal(fmt.Sprint("key ", i), err)
			}
		}
	}
	if len(c.keys) != 2 {
		t.Errorf("%d keys are kept", len(c.keys))
	}
}

// seeded derives from a seed that has generations, and counts.
type seeded struct {
	Keys
	seed  uint64
	times int
}

func (s *seeded) Generation() uint64 { return s.seed }

func (s *seeded) Session(id, pub string) saltcrypt.Key {
	s.times++
	return saltcrypt.DeriveSession([]byte{byte(s.seed)}, id, pub)
}

// TestSessionIsDerivedOnce for each minion that has a key, and each seed: two minions may have the same key.
func TestSessionIsDerivedOnce(t *testing.T) {
	var key minionKey
	from := &seeded{}
	for i, step := range []struct {
		id    string
		seed  uint64
		times int
	}{{"a", 1, 1}, {"a", 1, 1}, {"b", 1, 2}, {"b", 1, 2}, {"a", 1, 3}, {"a", 2, 4}, {"a", 2, 4}} {
		from.seed = step.seed
		want := saltcrypt.DeriveSession([]byte{byte(step.seed)}, step.id, "pub").Text()
		if got := key.sessionText(step.id, "pub", from); got != want || from.times != step.times {
			t.Errorf("step %d: another session, or derived %d times, not %d", i, from.times, step.times)
		}
	}
}
