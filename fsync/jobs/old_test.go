package jobs

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// oldText is how version 1 writes a text.
func oldText(s string) string { return string(binary.AppendUvarint(nil, uint64(len(s)))) + s }

// A member of an older version, played byte by byte: it wants whatever a digest tells of, and has a job of its own.
func TestOldMember(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var got bytes.Buffer // records
	w.Play("old", func(body []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if string(body[:4]) != "scjb" || body[4] != 1 {
			t.Errorf("%q", body)
		}
		switch body[5] {
		case 1: // a digest: everything of each job, please
			n := body[7]
			answer := []byte{0, n}
			for i := range n {
				answer = append(answer, i, 1)
			}
			return answer, nil
		case 3:
			got.Write(body)
			return []byte{0, 0}, nil
		}
		t.Errorf("%q", body)
		return nil, nil
	})
	everywhere := func(c *Config) { c.Replicas = func(string) []node.ID { return []node.ID{"a", "old"} } }
	a := w.add("a", everywhere)
	mine, theirs := w.jid(), w.jid()
	a.publish(mine, "m1")
	a.ret(mine, "m1", "one")
	patience.WaitNil(t, func() error {
		mu.Lock()
		defer mu.Unlock()
		for _, part := range []string{oldText(mine), oldText(loadFile), oldText(minionsFile), oldText("m1"),
			oldText(string(ret("one")))} {
			if !strings.Contains(got.String(), part) {
				return errors.New("the old member has no " + strconv.Quote(part))
			}
		}
		return nil
	})
	at := binary.AppendVarint(nil, time.Now().UnixNano())
	send := func(body string) string {
		t.Helper()
		answer, err := w.Send(t.Context(), "old", "a", []byte(body))
		require.NoError(t, err)
		return string(answer)
	}
	if answer := send("scjb\x01\x01\x01\x01" + oldText(theirs) + string(at) + "12345678"); answer != "\x00\x01\x00\x01" {
		t.Errorf("answer to a digest: %q", answer)
	}
	if p := a.store.Progress(); len(p) != 1 || p[0].Told != 1 || p[0].Lacking != 1 || p[0].Whole {
		t.Errorf("%+v", p)
	}
	record := func(flags byte, name string, data []byte) string {
		return oldText(theirs) + string(at) + string(flags) + oldText(name) + string(at) + oldText(string(data))
	}
	if answer := send("scjb\x01\x03\x03" + record(0, minionsFile, list("m2")) + record(0, loadFile, load(theirs, false)) +
		record(3, "m2", ret("two")) + oldText("\xa6nested")); answer != "\x00\x00" {
		t.Errorf("answer to records: %q", answer)
	}
	if files := a.content(theirs); len(files) != 5 || files["m2/"+returnFile] != string(ret("two")) ||
		files["m2/"+outFile] != "\xa6nested" {
		t.Errorf("%q", files)
	}
	if p := a.store.Progress(); p[0].Lacking != 0 {
		t.Errorf("%+v", p)
	}
}

// The bytes that other nodes of this and of the version before understand.
func TestWireFixtures(t *testing.T) {
	for i, name := range []string{"digest-v1", "items-v1", "records-v1", "find-v1", "list-v1"} {
		path := filepath.Join("testdata", "wire", name+".hex")
		got := hex.EncodeToString(samples()[i])
		want, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && os.Getenv("UPDATE_FIXTURES") != "" {
			want = []byte(got + "\n")
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, want, 0o644))
		}
		require.NoError(t, err)
		if got != strings.TrimSpace(string(want)) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
