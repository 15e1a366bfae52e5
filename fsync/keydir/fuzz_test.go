package keydir

import (
	"encoding/json"
	"testing"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/require"
)

const fuzzKey = "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAK\n-----END PUBLIC KEY-----"

// FuzzCheckText: what counts as a key file is one that consensus takes, and that it is the same with and without what
// Salt cleans away.
func FuzzCheckText(f *testing.F) {
	f.Add([]byte(fuzzKey))
	f.Add([]byte(fuzzKey + "\r\n"))
	f.Add([]byte(fuzzKey[:40]))
	f.Add([]byte(fuzzKey + "\n" + fuzzKey))
	f.Fuzz(func(t *testing.T, content []byte) {
		text, err := checkText(content)
		if err != nil {
			return
		}
		if len(text) > state.MaxPub || text != string(content) {
			t.Fatalf("%q became %q", content, text)
		}
		if printOf(text) != printOf("\n"+text+"\r\n") {
			t.Fatalf("%q is another key with an empty line around it", text)
		}
	})
}

// FuzzBase: the base on a share was written by another node, and its ids become names of files.
func FuzzBase(f *testing.F) {
	f.Add([]byte(`{"v":1,"uuid":"u","seen":3,"stamp":"s","keys":{"web1":{"s":"accepted","p":"aa","r":2}},"denied":{"web2":{"r":1}}}`))
	f.Add([]byte(`{"v":1,"keys":{"../web1":{"s":"accepted","r":2}}}`))
	f.Add([]byte(`{"v":1,"keys":null,"store":{"banks":[{},{}],"keys":{"a/b":{"r":1}}}}`))
	f.Add([]byte(`{"v":2}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		b, err := parseBase(content)
		if err != nil {
			return
		}
		known := lastSyncedOf(b, b.Store)
		for s := range known.is {
			require.NoError(t, state.ValidMinionID(s.id), "the memory of the store has", s.id)
		}
		for _, m := range []map[string]based{b.Keys, b.Denied} {
			for id := range m {
				require.NoError(t, state.ValidMinionID(id), "the base has", id)
			}
		}
		if _, err := json.Marshal(baseFile{Version: baseVersion, Keys: toFile(b.Keys), Denied: toFile(b.Denied),
			Store: b.Store}); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
	})
}

// FuzzLockText: how far the keeper of a share is.
func FuzzLockText(f *testing.F) {
	f.Add(lockText("ours", 7), "ours")
	f.Add(lockText("ours", 1<<63)+"rest of a longer one", "ours")
	f.Add("ours -1\n", "ours")
	f.Fuzz(func(t *testing.T, text, ours string) {
		if rev := parseLockText(text, ours); rev != 0 && parseLockText(lockText(ours, rev), ours) != rev && ours != "" {
			t.Fatalf("%q says %d", text, rev)
		}
	})
}
