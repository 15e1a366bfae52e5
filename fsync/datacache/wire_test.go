package datacache

import (
	"bytes"
	"reflect"
	"testing"
)

func someRecord() record {
	return record{
		id: "web1", stamp: 7 << stampBits, key: fingerprint("k"),
		data: data{main: texts("os", "Debian"), pillars: []pillar{{"", texts("a", "b")}, {"dev", texts("a", "c")}}},
	}
}

func TestRecordsSurviveTheWire(t *testing.T) {
	rs := []record{someRecord(), {id: "a:b", stamp: 1, data: data{main: []byte{0x80}}}}
	m, err := decode(Data, encodeRecords(Data, rs))
	if err != nil || !reflect.DeepEqual(m.records, rs) {
		t.Errorf("%+v, %v", m.records, err)
	}
	d := digest{ranged: true, from: "a", to: "x", answer: true, stamps: []stamped{{"b", 1}, {"c", 1 << 60}}}
	if m, err := decode(Data, encodeDigest(d)); err != nil || !reflect.DeepEqual(*m.digest, d) {
		t.Errorf("%+v, %v", m.digest, err)
	}
}

func TestDigestsCoverAllIDs(t *testing.T) {
	all := []stamped{{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}}
	ds := splitDigest(all, 2, true)
	if len(ds) != 3 || !ds[2].answer || ds[0].answer {
		t.Fatalf("%+v", ds)
	}
	table := map[string]entry{"0": {Stamp: 1}, "b": {Stamp: 9}, "bb": {Stamp: 1}, "d": {Stamp: 4}, "z": {Stamp: 1},
		"c": {Stamp: 2}}
	got := map[string]int{}
	for _, d := range ds {
		for _, id := range newer(table, d) {
			got[id]++
		}
	}
	if want := map[string]int{"0": 1, "b": 1, "bb": 1, "z": 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	if got := newer(table, wantDigest([]string{"b", "nobody"})); !reflect.DeepEqual(got, []string{"b"}) {
		t.Errorf("wanted: %v", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encodeRecords(Data, []record{someRecord()}))
	f.Add(encodeRecords(Mine, []record{{id: "web1", stamp: 9, key: fingerprint("k"), data: data{main: texts("f", "x")}},
		{id: "web2"}}))
	f.Add(encodeDigest(digest{ranged: true, stamps: []stamped{{"b", 1}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, k := range []Kind{Data, Mine} {
			m, err := decode(k, b)
			if err != nil {
				continue
			}
			again := encodeRecords(k, m.records)
			if m.digest != nil {
				again = encodeDigest(*m.digest)
			}
			if len(again) > len(b) {
				t.Errorf("%d bytes became %d", len(b), len(again))
			}
			for _, r := range m.records {
				for _, major := range []int{3006, 3008} {
					checkLayout(t, newLayout(k, master(major, "/")), r)
				}
			}
		}
	})
}

// checkLayout: what is written of a record is read back.
func checkLayout(t *testing.T, l layout, r record) {
	t.Helper()
	d, err := l.parse(r.id, l.build(r.id, r.data, nil))
	if gone := len(r.data.main) == 0; gone != (err != nil) || !bytes.Equal(d.main, r.data.main) {
		t.Errorf("%T: data of %q changed: %v", l, r.id, err)
	}
}
