//go:build linux && !purego

package fastrsa

import (
	"runtime/debug"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestEveryEntryIsRead takes each page of a table away in turn: who chooses an entry of another one must trip over it. A load that is masked in all lanes
// does not, as it reads nothing: what it leaves in the cache, and how long it takes, is then whatever the processor likes.
func TestEveryEntryIsRead(t *testing.T) {
	var dst [2 * maxLanes]uint64
	for _, c := range []struct {
		name   string
		engine engine
		size   int // bytes of the table
		choose func(table *uint64, entry uint64)
	}{
		{"four at once", ifma, fourEntries * 8 * len(octet{}), func(table *uint64, entry uint64) {
			var out octet
			which := [eight]uint64{entry, entry, entry, entry, entry, entry, entry, entry}
			chooseEight(&out[0], table, &which[0])
		}},
		{"a pair", ifma, entries * 2 * 24 * 8, func(table *uint64, entry uint64) { chooseIFMA(&dst[0], table, entry, entry) }},
		{"a pair, AVX2", fma, entries * 2 * 20 * 8, func(table *uint64, entry uint64) { chooseFMA(&dst[0], table, 2*20*8, entry, entry) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !slices.Contains(engines, c.engine) {
				t.Skip("this processor has not the instructions")
			}
			page := unix.Getpagesize()
			pages := (c.size + page - 1) / page
			room, err := unix.Mmap(-1, 0, pages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Munmap(room) }()
			table := (*uint64)(unsafe.Pointer(&room[0]))
			for away := range pages {
				for _, entry := range []uint64{0, uint64(entries)} { // the first, and none
					gone := room[away*page:][:page]
					if err := unix.Mprotect(gone, unix.PROT_NONE); err != nil {
						t.Fatal(err)
					}
					if !trips(func() { c.choose(table, entry) }) {
						t.Errorf("page %d of %d is not read for entry %d", away, pages, entry)
					}
					if err := unix.Mprotect(gone, unix.PROT_READ|unix.PROT_WRITE); err != nil {
						t.Fatal(err)
					}
				}
			}
			if trips(func() { c.choose(table, 0) }) {
				t.Error("it reads beyond the table")
			}
		})
	}
}

// trips tells whether f touches memory that is not there.
func trips(f func()) (tripped bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { tripped = recover() != nil }()
	f()
	return false
}
