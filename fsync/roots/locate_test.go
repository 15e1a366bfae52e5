package roots

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/fsync/scan"
	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
	"saltclusterd/integration/require"
)

// Who answers those that verify what they get reads a file again only where the disk shows another one than the last
// scan saw.
func TestDiskReader_Unread(t *testing.T) {
	top := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(top, "file"), []byte("what is there"), 0o644))
	dir, err := slotfs.Open(top)
	require.NoError(t, err)
	defer dir.Close()
	now, err := dir.Stat("file")
	require.NoError(t, err)
	scanned := func(change func(*scan.Item)) *scan.Item {
		item := &scan.Item{Stat: now}
		change(item)
		return item
	}
	same := func(*scan.Item) {}
	there, another := tree.Sum([]byte("what is there")), tree.Sum([]byte("what was there"))
	for _, c := range []struct {
		what   string
		hash   Hash
		item   *scan.Item
		unread bool
		here   bool
	}{
		{"as it was scanned", there, scanned(same), true, true},
		{"as it was scanned, for one who writes it to the disk", there, scanned(same), false, true},
		{"displaced", there, nil, true, true},
		{"another, to all appearances the same", another, scanned(same), true, true}, // who gets it sees that it is not
		{"the same, for one who writes it to the disk", another, scanned(same), false, false},
		{"edited, with its times put back", another, scanned(func(i *scan.Item) { i.Ctime -= int64(time.Second) }), true,
			false},
		{"edited while it was scanned", another, scanned(func(i *scan.Item) { i.Racy = true }), true, false},
		{"replaced", another, scanned(func(i *scan.Item) { i.Ino++ }), true, false},
		{"displaced, another", another, nil, true, false},
	} {
		d := &diskReader{where: map[Hash]location{c.hash: {top, "file", 0, uint32(now.Size), c.item}},
			dirs: map[string]*slotfs.Dir{}, unread: c.unread}
		b, err := d.chunk(c.hash)
		if d.close(); c.here && (err != nil || string(b) != "what is there") || !c.here && !errors.Is(err, errNotHere) {
			t.Errorf("%s: %q, %v", c.what, b, err)
		}
	}
}
