package roots

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"
)

// A mount that hangs does not keep an operator from seeing what was put aside, and what is elsewhere is found.
func TestFindWithin_Hangs(t *testing.T) {
	hang := make(chan struct{})
	var asked []string
	c := newCopies()
	c.lstat = func(path string) (fs.FileInfo, error) {
		asked = append(asked, path)
		if strings.HasPrefix(path, "/mnt/hangs") {
			<-hang
		}
		return nil, nil
	}
	lists := [][]string{{"/a"}, {"/mnt/hangs/b"}, {"/c"}}
	listed := map[int]string{}
	c.findWithin(time.Second, lists, func(i int, path string) { listed[i] = path })
	if len(listed) != 1 || listed[0] != "/a" {
		t.Errorf("found %v, want what is before the one that hangs", listed)
	}
	c.findWithin(time.Millisecond, lists, func(int, string) { t.Error("looked again beside one that hangs") })
	close(hang)
	c.turn <- struct{}{} // it has ended
	if want := []string{"/a", "/mnt/hangs/b", "/c"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q", asked)
	}
}

// What is not listed is not looked for.
func TestConflicts_Most(t *testing.T) {
	w := newWorld(t)
	_, b, c := w.inConflict("the cluster's", "the joiner's")
	looked := 0
	b.store.copies.lstat = func(string) (fs.FileInfo, error) {
		looked++
		return nil, errors.New("input/output error") // which does not say that it is gone
	}
	if list := b.store.Conflicts(1); len(list) != 1 || list[0].Kept != c.Kept || looked == 0 {
		t.Fatalf("%+v, want %+v; %d looked for", list, c, looked)
	}
	looked = 0
	if list := b.store.Conflicts(0); len(list) != 0 || looked != 0 {
		t.Errorf("%d listed, %d looked for", len(list), looked)
	}
}
