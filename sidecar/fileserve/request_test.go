package fileserve_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/fileserve"
	"saltclusterd/sidecar/fileserve/fileservetest"
	"saltclusterd/sidecar/saltwire"
)

func TestOnlyOrdinaryRequestsAreAnswered(t *testing.T) {
	s := newSite(t, 100)
	s.put("f", "1")
	for _, c := range []struct {
		cmd    string
		fields map[string]any
		want   bool
	}{
		{"_serve_file", map[string]any{"path": "f", "loc": 0}, true},
		{"_serve_file", map[string]any{"path": "f", "loc": 0, "gzip": nil, "unknown": []any{1}}, true},
		{"_serve_file", map[string]any{"path": "f", "loc": -1}, false},
		{"_serve_file", map[string]any{"path": "f", "loc": 0.0}, false},
		{"_serve_file", map[string]any{"path": "f", "loc": true}, false},
		{"_serve_file", map[string]any{"path": "f", "loc": nil}, false},
		{"_serve_file", map[string]any{"path": "f", "loc": 0, "gzip": 10}, false},
		{"_serve_file", map[string]any{"path": "f", "loc": 0, "gzip": true}, false},
		{"_file_hash", map[string]any{"path": "f?saltenv=base"}, false},
		{"_file_hash", map[string]any{"path": "|f"}, false},
		{"_file_hash", map[string]any{"path": "salt://f"}, false},
		{"_file_hash", map[string]any{"path": "SaLt:f"}, false},
		{"_file_hash", map[string]any{"path": "x://[f"}, false},
		{"_file_hash", map[string]any{"path": "a:b"}, true},
		{"_file_hash", map[string]any{"path": "f\x00"}, false},
		{"_file_hash", map[string]any{"path": "f\n"}, false},
		{"_file_hash", map[string]any{"path": []byte("f\xff")}, false},
		{"_file_hash", map[string]any{"path": 1}, false},
		{"_file_hash", map[string]any{"path": "f", "saltenv": nil}, false},
		{"_file_hash", map[string]any{"path": "f", "saltenv": "x\ny"}, false},
		{"_file_list", map[string]any{"prefix": nil}, false},
		{"_file_list", map[string]any{"fsbackend": "roots"}, true},
		{"_file_list", map[string]any{"fsbackend": 1}, false},
		{"_file_list", map[string]any{"fsbackend": nil}, true},
		{"_file_envs", map[string]any{"sources": true}, false},
		{"_file_envs", map[string]any{"back": []any{"roots"}}, true},
		{"_file_envs", nil, true},
		{"_pillar", nil, false},
	} {
		if got := s.ask("web1", c.cmd, c.fields); (got != nil) != c.want {
			t.Errorf("%s %v: answered %v", c.cmd, c.fields, got)
		}
	}
}

// TestParseLoad_ManyBackends: a list of nothing but empty names took sixteen times the size of the load and
// more, which may be 64 MiB.
func TestParseLoad_ManyBackends(t *testing.T) {
	const few, many = 256, 4 << 20
	for _, c := range []struct {
		field string
		names int
		want  error
	}{
		{"fsbackend", few, nil}, {"fsbackend", few + 1, fileserve.ErrForward}, {"fsbackend", many, fileserve.ErrForward},
		{"back", few, nil}, {"back", many, fileserve.ErrForward},
	} {
		load := saltwire.AppendRaw(saltwire.AppendMapHeader(nil, 1), c.field)
		load = append(saltwire.AppendArrayHeader(load, c.names), bytes.Repeat([]byte{0xa0}, c.names)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := fileserve.ParseLoad(load)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, c.want) || took > 1<<20 {
			t.Errorf("%d names in %s: %v, and %d bytes of memory", c.names, c.field, err, took)
		}
	}
}

func TestEnvironmentThatCannotBeListed(t *testing.T) {
	s := serve(t, fileservetest.New(t), fileservetest.Settings[0].Config, 3008)
	for _, cmd := range []string{"_file_list", "_dir_list", "_file_list_emptydirs", "_symlink_list"} {
		for range 2 {
			if reply, ok := answer(t, s, cmd, loadOf(t, cmd, map[string]any{"saltenv": fileservetest.Unlistable})); ok {
				t.Errorf("%s: %q", cmd, reply)
			}
		}
	}
}

// TestEnvironmentsStayInTheirPlace tries names of environments that lead out of what stands for __env__.
func TestEnvironmentsStayInTheirPlace(t *testing.T) {
	var dynamic fileservetest.Setting
	for _, s := range fileservetest.Settings {
		if s.Name == "dynamic" {
			dynamic = s
		}
	}
	s, tried := serve(t, fileservetest.New(t), dynamic.Config, 3008), 0
	for _, one := range fileservetest.Asks() {
		if !one.Diverges {
			continue
		}
		tried++
		reply, ok := answer(t, s, one.Cmd, one.Load)
		v, err := fileservetest.Decode(reply)
		if !ok || err != nil {
			continue
		}
		switch got := fileservetest.Show(v); got {
		case `[]`, `{}`, `""`, `["", <nil>]`, `{"path": "", "rel": ""}`, `{"data": "", "dest": ""}`:
		default:
			t.Errorf("%s: %s", one.Name, got)
		}
	}
	if tried < 100 {
		t.Errorf("%d tried", tried)
	}
}

// TestNoFileOutside tries what leads out of the roots where links are not followed.
func TestNoFileOutside(t *testing.T) {
	s := newSite(t, 100, func(set *fileserve.Settings) { set.Follow = false })
	secret := filepath.Join(filepath.Dir(s.root), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	for name, dest := range map[string]string{"rel": "../secret", "abs": secret, "dir": "..", "root": "/"} {
		require.NoError(t, os.Symlink(dest, filepath.Join(s.root, name)))
	}
	s.put("in", "inside")
	require.NoError(t, os.Symlink(filepath.Join(s.root, "in"), filepath.Join(s.root, "absin")))
	for _, path := range []string{"rel", "abs", "dir/secret", "root" + secret, "../secret", "x/../../secret", secret,
		"./../secret", ".."} {
		if got, _ := s.ask("web1", "_serve_file",
			map[string]any{"path": path, "loc": 0}).(map[string]any); got["data"] != "" {
			t.Errorf("%s: %v", path, got)
		}
	}
	if got := s.chunk("web1", "absin", 0); got != "inside" {
		t.Errorf("a link that stays inside: %q", got)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, one := range fileservetest.Asks() {
		f.Add(one.Load, uint8(len(one.Cmd)))
	}
	s := newSite(f, 16)
	s.put("one", "content of one")
	s.put("dir/two", "2")
	f.Fuzz(func(t *testing.T, load []byte, n uint8) {
		cmd := fileserve.Commands[int(n)%len(fileserve.Commands)]
		l, err := fileserve.ParseLoad(load)
		if err == nil && (len(l.Path) > 4096 || l.Loc < 0 || l.Gzip < 0 || l.Gzip > 9) {
			t.Errorf("parsed %+v", l)
		}
		calls := 0
		err = s.Answer(t.Context(), cmd, "web1", load, func(reply []byte) {
			calls++
			if _, err := fileservetest.Decode(reply); err != nil {
				t.Errorf("%s: %v", cmd, err)
			}
		})
		if (err == nil) != (calls == 1) {
			t.Errorf("%s: %d answers, %v", cmd, calls, err)
		}
	})
}

func FuzzLists(f *testing.F) {
	good, err := saltwire.AppendAny(nil, map[string]any{
		"files": []string{"a", "b/c"}, "dirs": []string{"b"}, "empty_dirs": []string{}, "links": map[string]any{"l": "a"},
	}, saltwire.Wire)
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte("\x80"))
	f.Add([]byte("\x81\xa5files\x91\x01"))
	f.Fuzz(func(t *testing.T, text []byte) {
		again, err := fileserve.Reread(text)
		if err != nil {
			return
		}
		twice, err := fileserve.Reread(again)
		if err != nil || string(again) != string(twice) {
			t.Errorf("%q, then %q, %v", again, twice, err)
		}
	})
}
