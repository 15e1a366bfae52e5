package spool

import (
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/durable"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// made is a journal with the offsets at which its records end.
func made(t *testing.T, c Config, n int) (dir string, ends map[string][]int64) {
	t.Helper()
	dir = t.TempDir()
	c.Dir = dir
	s := open(t, c)
	add(t, s, 0, n)
	s.Close()
	ends = map[string][]int64{}
	for _, path := range journals(t, dir) {
		g, _ := parseSegmentName(filepath.Base(path))
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		for at := int64(len(segmentMagic)); at < int64(len(b)); {
			f, ok := parseFrame(b[at:], g.salt)
			if !ok {
				t.Fatalf("no record at %d", at)
			}
			at += f.diskSize()
			ends[path] = append(ends[path], at)
		}
	}
	return dir, ends
}

// reopened opens a copy of dir that edit has changed and returns what it delivers.
func reopened(t *testing.T, dir string, want int, edit func(dir string)) ([]Record, Stats) {
	t.Helper()
	copied, err := os.MkdirTemp(t.TempDir(), "")
	require.NoError(t, err)
	copyDir(t, dir, copied)
	edit(copied)
	k := &sink{}
	s := open(t, Config{Dir: copied, Consumers: []Consumer{{Name: "late", Consume: k.consume}}})
	defer s.Close()
	require.NoError(t, s.Append(t.Context(), record(10_000)))
	patience.WaitFor(t, "the new record", func() bool {
		got := k.records()
		return len(got) > 0 && got[len(got)-1].Minion == "minion10000"
	})
	got := k.records()
	return got[:len(got)-1], s.Stats()
}

// TestCutAnywhere: the journal ends at any byte; every whole record is there, nothing else, and it is no damage.
func TestCutAnywhere(t *testing.T) {
	dir, ends := made(t, Config{}, 4)
	for path, list := range ends {
		for cut := int64(0); cut <= list[len(list)-1]; cut++ {
			whole := 0
			for whole < len(list) && list[whole] <= cut {
				whole++
			}
			got, st := reopened(t, dir, whole, func(d string) {
				require.NoError(t, os.Truncate(filepath.Join(d, filepath.Base(path)), cut))
			})
			check(t, got, 0, whole)
			if st.Damages != 0 {
				t.Fatalf("cut at %d: %+v", cut, st)
			}
		}
	}
}

// TestChangedAnywhere: any byte is another; it is found, what was lost is counted, and the rest is delivered.
func TestChangedAnywhere(t *testing.T) {
	dir, ends := made(t, Config{}, 4)
	for path, list := range ends {
		for at := int64(0); at < list[len(list)-1]; at++ {
			got, st := reopened(t, dir, 3, func(d string) {
				name := filepath.Join(d, filepath.Base(path))
				b, err := os.ReadFile(name)
				require.NoError(t, err)
				b[at] ^= 0x40
				require.NoError(t, os.WriteFile(name, b, 0o600))
			})
			inLast := at >= list[len(list)-2]
			switch {
			case at < int64(len(segmentMagic)):
				check(t, got, 0, 4)
			case len(got) != 3:
				t.Fatalf("byte %d: %d records", at, len(got))
			case !inLast && st.Lost != 1:
				t.Fatalf("byte %d: %+v", at, st)
			}
			if st.Damages == 0 && !inLast {
				t.Fatalf("byte %d: nothing reported", at)
			}
		}
	}
}

func TestEarlierSegments(t *testing.T) {
	dir, ends := made(t, Config{SegmentBytes: 300}, 12)
	names := journals(t, dir)
	if len(names) < 3 {
		t.Fatalf("%d segments", len(names))
	}
	missing := uint64(len(ends[names[1]]))
	for what, edit := range map[string]func(path string) error{
		"gone":  os.Remove,
		"empty": func(path string) error { return os.Truncate(path, 0) },
		"short": func(path string) error { return os.Truncate(path, int64(len(segmentMagic))+3) },
	} {
		got, st := reopened(t, dir, 12, func(d string) {
			require.NoError(t, edit(filepath.Join(d, filepath.Base(names[1]))))
		})
		if uint64(len(got)) != 12-missing || st.Lost != missing {
			t.Errorf("%s: %d records, %+v", what, len(got), st)
		}
	}
}

// TestPutAsideLasts: what is taken out of the journal because it is damaged has its other name on the disk before the
// journal opens, and what is cut off is there with its content before it is cut off: a power loss leaves one or both.
func TestPutAsideLasts(t *testing.T) {
	for what, change := range map[string]func(b []byte, last int64) (aside []byte){
		"the end": func(b []byte, last int64) []byte {
			b[len(b)-1] ^= 0x40
			return b[last:]
		},
		"all of it": func(b []byte, _ int64) []byte {
			for i := range b {
				b[i] = 'x'
			}
			return b
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir, ends := made(t, Config{}, 4)
			path := journals(t, dir)[0]
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			want := string(change(b, ends[path][2]))
			require.NoError(t, os.WriteFile(path, b, 0o600))
			synced, named := false, false
			c := Config{Dir: dir, Consumers: []Consumer{{Name: "c", Consume: new(sink).consume}}}
			c.Disk.Sync = func(f *os.File) error {
				if f.Name() == path+".damaged" {
					now, err := os.ReadFile(path)
					synced = err == nil && len(now) == len(b)
				}
				return f.Sync()
			}
			c.Disk.Names = func(of string) error {
				if got, err := os.ReadFile(path + ".damaged"); err == nil && string(got) == want {
					now, err := os.ReadFile(path)
					named = named || os.IsNotExist(err) || synced && len(now) == len(b)
				}
				return durable.SyncDir(of)
			}
			require.NoError(t, open(t, c).Close())
			if got, err := os.ReadFile(path + ".damaged"); err != nil || string(got) != want || !named {
				t.Errorf("%d bytes are put aside, on the disk by name: %t; %v", len(got), named, err)
			}
		})
	}
}

// TestRotUnderUs: damage that comes while the spool is open is found when the records are read.
func TestRotUnderUs(t *testing.T) {
	dir, k := t.TempDir(), &sink{most: 1}
	k.set(os.ErrDeadlineExceeded)
	s := open(t, Config{Dir: dir, KeepBytes: 1, BatchRecords: 1, Consumers: []Consumer{{Name: "a", Consume: k.consume}}})
	add(t, s, 0, 10)
	path := journals(t, dir)[0]
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	g, _ := parseSegmentName(filepath.Base(path))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	at := int64(len(segmentMagic))
	for range 5 {
		r, _ := parseFrame(b[at:], g.salt)
		at += r.diskSize()
	}
	if _, err := f.WriteAt([]byte("rot"), at+frameSize+2); err != nil {
		t.Fatal(err)
	}
	// what the consumer's reader had read already is good; a new one sees the file as it is
	s.Close()
	k.set(nil)
	s = open(t, Config{Dir: dir, Consumers: []Consumer{{Name: "a", Consume: k.consume}}})
	patience.WaitFor(t, "nine", func() bool { return len(k.records()) == 9 })
	if st := s.Stats(); st.Lost != 1 || st.Damages != 1 {
		t.Errorf("%+v", st)
	}
}

// TestForgedRecord: a load that holds the bytes of a record, taken from another journal, is a load.
func TestForgedRecord(t *testing.T) {
	forged := appendFrame(nil, 0x1234567812345678, 77, 1<<40, []byte("\x01\x01evil"))
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	require.NoError(t, s.Append(t.Context(), Record{Minion: "m", Load: append(forged, forged...)}))
	s.Close()
	path := journals(t, dir)[0]
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, info.Size()-3))
	got, st := reopened(t, dir, 0, func(string) {})
	if len(got) != 0 || st.Damages != 0 {
		t.Errorf("%d records, %+v", len(got), st)
	}
}

func FuzzFrames(f *testing.F) {
	const salt = 0xa1b2c3d4e5f60718
	body, _ := appendRecord(nil, &Record{Minion: "m", JID: "1", Load: []byte("x")})
	f.Add(appendFrame(nil, salt, 1, 12, body))
	f.Add(appendFrame([]byte("junk"), salt, 2, 12, body))
	f.Fuzz(func(t *testing.T, b []byte) {
		if fr, ok := parseFrame(b, salt); ok {
			if r, err := parseRecord(fr.body); err == nil {
				again, err := appendRecord(nil, &r)
				if err != nil || string(again) != string(fr.body) {
					t.Fatalf("%x became %x, %v", fr.body, again, err)
				}
			}
		}
		if at := findFrame(b, salt, 0); at >= 0 {
			if _, ok := parseFrame(b[at:], salt); !ok {
				t.Fatal("found what does not parse")
			}
		}
		_, _ = parseRecord(b)
		_, _, _, _, _ = parseCursor(append(b, make([]byte, cursorLength)...))
	})
}
