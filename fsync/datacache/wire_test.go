package datacache

import (
	"bytes"
	"reflect"
	"testing"
)

func someRecord() record {
	return record{
		id: "web1", stamp: 7 << stampBits, key: fingerprint("k"),
		data: data{grains: texts("os", "Debian"), pillars: []pillar{{"", texts("a", "b")}, {"dev", texts("a", "c")}}},
	}
}

func TestRecordsSurviveTheWire(t *testing.T) {
	rs := []record{someRecord(), {id: "a:b", stamp: 1, data: data{grains: []byte{0x80}}}}
	m, err := decode(encodeRecords(rs))
	if err != nil || !reflect.DeepEqual(m.records, rs) {
		t.Errorf("%+v, %v", m.records, err)
	}
	d := digest{ranged: true, from: "a", to: "x", answer: true, stamps: []stamped{{"b", 1}, {"c", 1 << 60}}}
	if m, err := decode(encodeDigest(d)); err != nil || !reflect.DeepEqual(*m.digest, d) {
		t.Errorf("%+v, %v", m.digest, err)
	}
}

func TestDigestsCoverAllIDs(t *testing.T) {
	all := []stamped{{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}}
	ds := splitDigest(all, 2, true)
	if len(ds) != 3 || !ds[2].answer || ds[0].answer {
		t.Fatalf("%+v", ds)
	}
	table := map[string]entry{"0": {Stamp: 1}, "b": {Stamp: 9}, "bb": {Stamp: 1}, "d": {Stamp: 4}, "z": {Stamp: 1}, "c": {Stamp: 2}}
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
	f.Add(encodeRecords([]record{someRecord()}))
	f.Add(encodeDigest(digest{ranged: true, stamps: []stamped{{"b", 1}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(b)
		if err != nil {
			return
		}
		again := encodeRecords(m.records)
		if m.digest != nil {
			again = encodeDigest(*m.digest)
		}
		if len(again) > len(b) {
			t.Errorf("%d bytes became %d", len(b), len(again))
		}
		for _, r := range m.records {
			for _, major := range []int{3006, 3008} {
				l := newLayout(master(major, "/"))
				d, err := l.parse(r.id, l.build(r.id, r.data, nil))
				if err != nil || !bytes.Equal(d.grains, r.data.grains) {
					t.Errorf("%d: grains of %q changed: %v", major, r.id, err)
				}
			}
		}
	})
}

func FuzzEntries(f *testing.F) {
	f.Add(texts("grains", "x"))
	f.Add([]byte{0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x81, 0xc7, 0x01, 0x4e, 0x00, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		total := 0
		if err := entries(b, func(key string, value []byte) { total += len(value) }); err == nil && total > len(b) {
			t.Error("values larger than the map")
		}
	})
}
