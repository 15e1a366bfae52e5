package datacache

import (
	"bytes"
	"testing"

	"saltclusterd/fsync/msgpack"
)

// FuzzLayouts reads bytes as the file in which each version keeps data of a minion, which are mostly what the minion
// said of itself. What is understood is understood again when it was written in the other version's layout.
func FuzzLayouts(f *testing.F) {
	grains := []byte("\x81\xa2os\xa6Debian")
	f.Add(append(msgpack.AppendShort([]byte{0x81}, "grains"), grains...))
	f.Add(append(append(msgpack.AppendShort([]byte{0x82}, "grains"), grains...),
		append(msgpack.AppendShort(nil, "pillar"), 0x80)...))
	f.Add(grains)
	f.Add([]byte{0xdf, 0xff, 0xff, 0xff, 0xff})
	const id = "web1"
	layouts := []layout{joined{}, &split{pillars: true, envs: envs{}}, joinedMine{}, splitMine{}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for i, l := range layouts {
			d, err := l.parse(id, fileSet{l.names(id)[0]: raw})
			if err != nil {
				continue
			}
			if !msgpack.WholeMap(d.main) {
				t.Fatalf("layout %d takes %x for data", i, d.main)
			}
			for _, o := range layouts[i&^1 : i&^1+2] { // both of data, both of mines
				again, err := o.parse(id, o.build(id, d, nil))
				if err != nil || !bytes.Equal(again.main, d.main) || len(again.pillars) != len(d.pillars) {
					t.Fatalf("layout %d to another: %+v became %+v, %v", i, d, again, err)
				}
			}
		}
	})
}
