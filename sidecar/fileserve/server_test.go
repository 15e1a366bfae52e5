package fileserve_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/fileserve"
	"saltclusterd/sidecar/fileserve/fileservetest"
	"saltclusterd/sidecar/saltwire"
)

// site is one root of one environment and a server for it.
type site struct {
	t    testing.TB
	root string
	set  *fileserve.Settings
	*fileserve.Server
	reg *prometheus.Registry
	now time.Time
}

func newSite(t testing.TB, buffer int, change ...func(*fileserve.Settings)) *site {
	t.Helper()
	c := &fileservetest.Corpus{Dir: t.TempDir()}
	root := filepath.Join(c.Dir, "root")
	require.NoError(t, os.Mkdir(root, 0o755))
	base := serve(t, c, fmt.Sprintf("file_roots:\n  base: [@/root]\nfile_buffer_size: %d\n", buffer), 3008)
	s := &site{t: t, root: root, set: base.Settings(), reg: prometheus.NewRegistry(), now: time.Now().Add(time.Hour)}
	for _, f := range change {
		f(s.set)
	}
	s.Server = fileserve.New(fileserve.Config{Now: func() time.Time { return s.now }, Registerer: s.reg})
	s.Use(s.set, "")
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (s *site) put(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.root, name)
	next := path + ".new"
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(s.t, os.WriteFile(next, []byte(content), 0o644))
	require.NoError(s.t, os.Rename(next, path))
}

// ask returns the answer for one minion, decoded; nil: forwarded.
func (s *site) ask(minion, cmd string, fields map[string]any) any {
	s.t.Helper()
	load := map[string]any{"cmd": cmd, "saltenv": "base"}
	for k, v := range fields {
		load[k] = v
	}
	plain, err := saltwire.AppendAny(nil, load, saltwire.Wire)
	require.NoError(s.t, err)
	var out any
	_ = s.Answer(s.t.Context(), cmd, minion, plain, func(reply []byte) {
		if out, err = fileservetest.Decode(reply); err != nil {
			s.t.Errorf("%s: %v", cmd, err)
		}
	})
	return out
}

func (s *site) chunk(minion, path string, loc int) string {
	s.t.Helper()
	m, _ := s.ask(minion, "_serve_file", map[string]any{"path": path, "loc": loc}).(map[string]any)
	data, ok := m["data"].(string)
	if !ok {
		s.t.Fatalf("chunk of %s at %d: %v", path, loc, m)
	}
	return data
}

// fetch is what salt.fileclient.RemoteClient.get_file does; between is called before each chunk but the first.
func (s *site) fetch(minion, path string, between func()) string {
	s.t.Helper()
	var got strings.Builder
	for {
		data := s.chunk(minion, path, got.Len())
		if data == "" {
			return got.String()
		}
		got.WriteString(data)
		between()
	}
}

func (s *site) metric(name string) float64 {
	s.t.Helper()
	families, err := s.reg.Gather()
	require.NoError(s.t, err)
	for _, f := range families {
		if f.GetName() == "saltcluster_fileserve_"+name {
			return f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	s.t.Fatalf("no metric %s", name)
	return 0
}

func TestTransferIsOfOneVersion(t *testing.T) {
	for _, c := range []struct {
		name   string
		size   int
		change func(*site, string)
	}{
		{"replaced", 95, func(s *site, p string) { s.put(p, strings.Repeat("new ", 40)) }},
		{"replaced by a shorter one", 95, func(s *site, p string) { s.put(p, "n") }},
		{"removed", 95, func(s *site, p string) { _ = os.Remove(filepath.Join(s.root, p)) }},
		{"its directory replaced", 95, func(s *site, p string) {
			_ = os.RemoveAll(filepath.Join(s.root, "d"))
			s.put(p, strings.Repeat("new ", 40))
		}},
		{"one chunk replaced", 10, func(s *site, p string) { s.put(p, strings.Repeat("new ", 40)) }},
		{"one chunk removed", 10, func(s *site, p string) { _ = os.Remove(filepath.Join(s.root, p)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, 10)
			old := strings.Repeat("0123456789", 10)[:c.size]
			s.put("d/f", old)
			done := false
			got := s.fetch("web1", "d/f", func() {
				if !done {
					done = true
					c.change(s, "d/f")
				}
			})
			check.Equal(t, got, old)
			if c.name == "replaced" && !strings.HasPrefix(s.chunk("web1", "d/f", 0), "new ") {
				t.Error("the next transfer is not of the new file")
			}
		})
	}
}

// A file of one chunk is not held open: who goes back into one that was replaced meanwhile, which no minion does, gets
// what is there now.
func TestServeFile_ReplacedChunk(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*site)
		want   string
	}{
		"replaced": {func(s *site) { s.put("f", "abcdefghij") }, "fghij"},
		"removed":  {func(s *site) { _ = os.Remove(filepath.Join(s.root, "f")) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 10)
			s.put("f", "0123456789")
			s.chunk("web1", "f", 0)
			c.change(s)
			check.Equal(t, s.chunk("web1", "f", 5), c.want)
		})
	}
}

// As with a stock master, what is appended to a file meanwhile is served.
func TestServeFile_ChangedInPlace(t *testing.T) {
	s := newSite(t, 10)
	s.put("log", "0123456789")
	first := s.chunk("web1", "log", 0)
	f, err := os.OpenFile(filepath.Join(s.root, "log"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("more")
	require.NoError(t, f.Close())
	require.NoError(t, err)
	check.Equal(t, first+s.chunk("web1", "log", 10), "0123456789more")
}

func TestIdleTransferIsForgotten(t *testing.T) {
	s := newSite(t, 10)
	s.put("f", strings.Repeat("old", 10))
	s.chunk("web1", "f", 0)
	s.put("f", strings.Repeat("new", 10))
	s.now = s.now.Add(time.Hour)
	if got := s.chunk("web1", "f", 10); got != "ewnewnewne" {
		t.Errorf("got %q after an hour", got)
	}
}

func TestOnceForAFleet(t *testing.T) {
	s := newSite(t, 1<<20)
	content := bytes.Repeat([]byte("x"), 300_000)
	s.put("big", string(content))
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if got := s.chunk(fmt.Sprint("web", i), "big", 0); got != string(content) {
				t.Errorf("%d bytes", len(got))
			}
			s.ask(fmt.Sprint("web", i), "_file_hash", map[string]any{"path": "big"})
		})
	}
	wg.Wait()
	if n := s.metric("read_bytes_total"); n != 300_000 {
		t.Errorf("read %.0f bytes", n)
	}
	if n := s.metric("hashed_bytes_total"); n != 300_000 {
		t.Errorf("hashed %.0f bytes", n)
	}
}

// TestYoungFileIsReadAgain is about a file that may be written once more without another time.
func TestYoungFileIsReadAgain(t *testing.T) {
	s := newSite(t, 1<<20)
	s.put("f", "one")
	info, err := os.Stat(filepath.Join(s.root, "f"))
	require.NoError(t, err)
	s.now = info.ModTime()
	s.chunk("web1", "f", 0)
	s.chunk("web1", "f", 0)
	if n := s.metric("read_bytes_total"); n != 6 {
		t.Errorf("read %.0f bytes, want 6", n)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	s := newSite(t, 64<<10)
	s.reg = prometheus.NewRegistry()
	s.Server = fileserve.New(fileserve.Config{
		Limits: fileserve.Limits{Chunks: 1 << 20, Lists: 64 << 10, Hashes: 4 << 10}, Now: func() time.Time { return s.now },
		Registerer: s.reg,
	})
	s.Use(s.set, "")
	for i := range 200 {
		name := fmt.Sprint("f", i)
		s.put(name, strings.Repeat(name, 35_000)[:70_000])
		s.chunk("web1", name, 0)
		s.ask("web1", "_file_hash", map[string]any{"path": name})
	}
	if n := s.metric("kept_bytes"); n > 1<<20+68<<10 {
		t.Errorf("%.0f bytes in memory", n)
	}
	if n := s.metric("open_files"); n > 128 {
		t.Errorf("%.0f files open", n)
	}
	require.NoError(t, s.Close())
	if n := s.metric("open_files"); n != 0 {
		t.Errorf("%.0f files open after Close", n)
	}
}

func TestListsFollowTheMastersFile(t *testing.T) {
	s := newSite(t, 10)
	s.now = time.Now().Add(10 * time.Second) // lists are stamped by the real clock
	s.put("one", "1")
	list := func() string { return fileservetest.Show(s.ask("web1", "_file_list", nil)) }
	if got := list(); got != `["one"]` {
		t.Fatalf("listed %s", got)
	}
	s.put("two", "2")
	if got := list(); got != `["one"]` {
		t.Errorf("listed %s within 20 s", got)
	}
	file := filepath.Join(s.set.ListDir, "base.p")
	require.NoError(t, os.Remove(file)) // fileserver.clear_file_list_cache
	if got := list(); got != `["one", "two"]` {
		t.Errorf("listed %s after the list was removed", got)
	}
	theirs, err := saltwire.AppendAny(nil, map[string]any{
		"files": []string{"by python"}, "dirs": []string{}, "empty_dirs": []string{}, "links": map[string]any{"a": "b"},
	}, saltwire.Wire)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, theirs, 0o644)) // a worker of the master
	check.Equal(t, list(), `["by python"]`, "listed")
	check.Equal(t, fileservetest.Show(s.ask("web1", "_symlink_list", nil)), `{"a": "b"}`, "links")
	require.NoError(t, os.WriteFile(file, []byte("torn"), 0o644))
	if got := list(); got != `["one", "two"]` {
		t.Errorf("listed %s with a torn list on disk", got)
	}
	s.put("three", "3")
	s.now = s.now.Add(21 * time.Second)
	if got := list(); got != `["one", "three", "two"]` {
		t.Errorf("listed %s after 20 s", got)
	}
	s.Forget()
	s.put("four", "4")
	require.NoError(t, os.Remove(file))
	if got := list(); got != `["four", "one", "three", "two"]` {
		t.Errorf("listed %s after Forget", got)
	}
}

// What was removed from a root that is a file system of its own lies inside of it, and is nobody's to read.
func TestAnswer_HidesOwnFiles(t *testing.T) {
	s := newSite(t, 100)
	for _, name := range []string{"f", ".saltcluster-area/keep/removed", "d/.saltcluster-x", "d/saltcluster-y"} {
		s.put(name, "text")
	}
	require.NoError(t, os.Symlink("removed", filepath.Join(s.root, ".saltcluster-area/keep/link")))
	for cmd, want := range map[string]string{
		"_file_list": `["d/saltcluster-y", "f"]`, "_dir_list": `["d"]`, "_symlink_list": "{}", "_file_list_emptydirs": "[]",
	} {
		check.Equal(t, fileservetest.Show(s.ask("web1", cmd, nil)), want, cmd)
	}
	for _, alone := range []bool{true, false} {
		set := *s.set
		set.Alone = alone
		s.Use(&set, "")
		for _, path := range []string{".saltcluster-area/keep/removed", "d/.saltcluster-x", "./d//.saltcluster-x"} {
			for cmd, fields := range map[string]map[string]any{"_file_find": {}, "_file_hash": {}, "_serve_file": {"loc": 0}} {
				fields["path"] = path
				got := fileservetest.Show(s.ask("web1", cmd, fields))
				fields["path"] = "nothing"
				set.Alone = true
				if want := fileservetest.Show(s.ask("web1", cmd, fields)); got != want {
					t.Errorf("%s of %s, alone %v: %s, not %s", cmd, path, alone, got, want)
				}
				set.Alone = alone
			}
		}
	}
	// The master's Python, which knows no better, has made a list.
	s.Use(s.set, "")
	file := filepath.Join(s.set.ListDir, "base.p")
	raw, err := saltwire.AppendAny(nil, map[string]any{
		"files": []any{"f", ".saltcluster-area/keep/removed"}, "dirs": []any{".saltcluster-area", "d"},
		"empty_dirs": []any{".saltcluster-area/aside"},
		"links":      map[string]any{".saltcluster-area/keep/link": "removed"},
	}, saltwire.Wire)
	if err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	if err == nil {
		err = os.Chtimes(file, s.now, s.now)
	}
	require.NoError(t, err)
	if got := fileservetest.Show(s.ask("web1", "_file_list", nil)) + fileservetest.Show(s.ask("web1", "_dir_list", nil)) +
		fileservetest.Show(s.ask("web1", "_file_list_emptydirs", nil)) + fileservetest.Show(s.ask("web1", "_symlink_list",
		nil)); got != `["f"]["d"][]{}` {
		t.Error(got)
	}
}

func TestFileList_NoListDir(t *testing.T) {
	s := newSite(t, 10, func(set *fileserve.Settings) { set.ListDir = "/proc/nowhere" })
	s.put("one", "1")
	list := func() string { return fileservetest.Show(s.ask("web1", "_file_list", nil)) }
	first := list()
	s.put("two", "2")
	if got := list(); first != `["one"]` || got != first {
		t.Errorf("listed %s, then %s", first, got)
	}
	s.Forget()
	if got := list(); got != `["one", "two"]` {
		t.Errorf("listed %s after Forget", got)
	}
}

// In a directory that the master's user may list and not search nothing is known of an entry but its name: for
// os.path.islink, which Salt asks, nothing there is a link.
func TestFileList_UnsearchableDirectory(t *testing.T) {
	s := newSite(t, 10, func(set *fileserve.Settings) { set.IgnoreLinks = true })
	s.put("closed/file", "1")
	for _, dir := range []string{"link", "closed/link"} {
		require.NoError(t, os.Symlink("file", filepath.Join(s.root, dir)))
	}
	for dir, mode := range map[string]os.FileMode{filepath.Join(s.root, "closed"): 0o444,
		filepath.Dir(filepath.Dir(s.root)): 0o711} {
		require.NoError(t, os.Chmod(dir, mode))
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(s.root, "closed"), 0o755) })
	asNobody(t, func() {
		if got := fileservetest.Show(s.ask("web1", "_file_list", nil)); got != `["closed/file", "closed/link"]` {
			t.Errorf("listed %s", got)
		}
		s.set.IgnoreLinks = false
		s.Forget()
		check.Equal(t, fileservetest.Show(s.ask("web1", "_symlink_list", nil)), `{"link": "file"}`, "links")
	})
}

// What leads to a place that the service manager keeps from this process is the master's.
func TestAnswer_HiddenPaths(t *testing.T) {
	hidden := filepath.Join(t.TempDir(), "tmp")
	s := newSite(t, 10, func(set *fileserve.Settings) { set.Hidden = []string{hidden} })
	s.put("file", "1")
	for name, dest := range map[string]string{"dangling": "nowhere", "dir": filepath.Dir(hidden)} {
		require.NoError(t, os.Symlink(dest, filepath.Join(s.root, name)))
	}
	find := func(path string) string {
		return fileservetest.Show(s.ask("web1", "_serve_file", map[string]any{"path": path, "loc": 0}))
	}
	for _, path := range []string{"missing", "dangling", "dir/temporary"} {
		check.Contains(t, find(path), `"dest": ""`, path)
	}
	check.Equal(t, fileservetest.Show(s.ask("web1", "_file_list", nil)), `["dangling", "file"]`, "listed")
	s.Forget()
	require.NoError(t, os.Symlink(hidden+"/build", filepath.Join(s.root, "build")))
	for _, path := range []string{"build", "build/x", "dir/tmp/x"} {
		check.Equal(t, find(path), "<nil>", path)
	}
	if got := s.ask("web1", "_file_list", nil); got != nil {
		t.Errorf("listed %v", got)
	}
	check.Equal(t, s.chunk("web1", "file", 0), "1")
	s.set.Roots["base"] = []string{s.root, hidden + "/states"}
	check.Equal(t, find("missing"), "<nil>", "a root that is hidden")
}

// A stock master hashes small files while some of its workers are busy with large ones.
func TestFileHash_SmallBesideLarge(t *testing.T) {
	s := newSite(t, 10)
	s.put("small", "1")
	hashed := make(chan string, runtime.GOMAXPROCS(0))
	for i := range cap(hashed) {
		name := fmt.Sprint("large", i)
		s.put(name, "")
		require.NoError(t, os.Truncate(filepath.Join(s.root, name), 512<<20))
		go func() { hashed <- fileservetest.Show(s.ask("web1", "_file_hash", map[string]any{"path": name})) }()
	}
	for end := time.Now().Add(time.Minute); !s.Hashing(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("no large file is hashed")
		}
	}
	if got := fileservetest.Show(s.ask("web2", "_file_hash", map[string]any{"path": "small"})); !strings.Contains(got,
		"hsum") {
		t.Errorf("answered %s", got)
	}
	if n := len(hashed); n > 0 {
		t.Errorf("it came after %d large ones", n)
	}
	for range cap(hashed) {
		check.Contains(t, <-hashed, "hsum", "answered")
	}
}

func TestMoreBackends(t *testing.T) {
	s := newSite(t, 100, func(set *fileserve.Settings) { set.Alone = false })
	s.put("here", "1")
	check.Equal(t, s.chunk("web1", "here", 0), "1")
	for cmd, fields := range map[string]map[string]any{
		"_serve_file": {"path": "elsewhere", "loc": 0}, "_file_hash": {"path": "elsewhere"},
		"_file_find": {"path": "elsewhere"},
		"_file_list": nil, "_dir_list": nil, "_symlink_list": nil, "_file_list_emptydirs": nil, "_file_envs": nil,
	} {
		if got := s.ask("web1", cmd, fields); got != nil {
			t.Errorf("%s: answered %v", cmd, got)
		}
	}
}

func TestServeFile_Pipe(t *testing.T) {
	s := newSite(t, 100)
	if out := mkfifo(filepath.Join(s.root, "pipe")); out != nil {
		t.Skip(out)
	}
	m, _ := s.ask("web1", "_serve_file", map[string]any{"path": "pipe", "loc": 0}).(map[string]any)
	if m == nil || m["dest"] != "" {
		t.Errorf("answered %v", m)
	}
}

func TestUse_NoSettings(t *testing.T) {
	s := newSite(t, 100)
	s.put("f", "1")
	s.Use(nil, "because")
	if s.ask("web1", "_file_hash", map[string]any{"path": "f"}) != nil || s.Takes("_file_hash") {
		t.Error("answered without settings")
	}
	if ok, reason := s.Native(); ok || reason != "because" {
		t.Errorf("%v %q", ok, reason)
	}
	s.Use(s.set, "")
	for load, want := range map[string]bool{"\x80": true, "\x81\xa7sources\xc0": true, "\x81\xa7sources\xc2": false,
		"\x91\xc0": false} {
		if s.Reads("_file_envs", []byte(load)) != want {
			t.Errorf("%q: %t", load, !want)
		}
	}
	if !s.Takes("_file_hash") || s.Takes("_pillar") || s.Takes("_file_recv") {
		t.Error("the wrong commands are taken")
	}
	if n := testutil.CollectAndCount(s.reg); n == 0 {
		t.Error("no metrics")
	}
}

// Files of /proc say that they have nothing in them: a master reads them all the same, whatever their size.
func TestServeFile_ZeroSize(t *testing.T) {
	s := newSite(t, 4096)
	const odd = "/proc/version"
	info, err := os.Stat(odd)
	if text, err2 := os.ReadFile(odd); err != nil || err2 != nil || info.Size() > 0 || len(text) == 0 {
		t.Skip("this system has no such file")
	}
	require.NoError(t, os.Symlink(odd, filepath.Join(s.root, "odd")))
	s.put("empty", "")
	if got := s.ask("web1", "_serve_file", map[string]any{"path": "odd", "loc": 0}); got != nil {
		t.Errorf("answered %v", got)
	}
	if got := s.ask("web1", "_serve_file", map[string]any{"path": "empty", "loc": 0}); got == nil {
		t.Error("an empty file was left to the master")
	}
}

// Where a file system has no such place in a file a master stumbles.
func TestFarBehindTheEnd(t *testing.T) {
	s := newSite(t, 4096)
	s.put("one", "1")
	file, err := os.Open(filepath.Join(s.root, "one"))
	require.NoError(t, err)
	defer file.Close()
	for _, loc := range []int64{1, 2, 1 << 40, 1 << 50, 1<<63 - 1} {
		_, err := file.Seek(loc, io.SeekStart)
		got := s.ask("web1", "_serve_file", map[string]any{"path": "one", "loc": loc})
		if (got != nil) != (err == nil) {
			t.Errorf("%d: answered %v, but the file system says %v", loc, got, err)
		}
	}
}
