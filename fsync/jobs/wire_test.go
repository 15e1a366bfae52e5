package jobs

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"saltclusterd/integration/require"
)

func samples() [][]byte {
	return [][]byte{
		encodeDigest(digest{answer: true, jobs: []digested{{"20260102000000000001", 17, 1 << 63}, {"custom", -1, 2}}}),
		encodeItems(listed{"20260102000000000001", 17, []item{
			{name: loadFile, rank: 2, mtime: 99, size: 12}, {name: "m1", ret: true}, {name: ".minions.s1.p", rank: 1},
		}}),
		encodeRecords([]*record{
			{jid: "j", at: 1, name: loadFile, mtime: 5, data: []byte{0x80}},
			{jid: "j", at: 1, name: "m1", ret: true, data: []byte("x"), out: []byte("y"), hasO: true},
		}),
		encodeFind("20260102000000000001"), encodeList(50),
		encodeRecords([]*record{{jid: "j", name: "m1", ret: true, ahead: true, data: []byte("x")}}),
	}
}

func TestWire(t *testing.T) {
	for _, b := range samples() {
		m, err := decode(b)
		require.NoError(t, err, b)
		if got := encode(m); !bytes.Equal(got, b) {
			t.Errorf("%q became %q", b, got)
		}
	}
	w := wish{flags: answerAgain, which: []int{0, 3}, how: []byte{wantAll, wantItems}}
	if got, err := decodeWish(w.encode(), 4, true); err != nil || !reflect.DeepEqual(got, w) {
		t.Errorf("%+v %v", got, err)
	}
}

func TestWireRefuses(t *testing.T) {
	good := samples()
	for _, b := range [][]byte{
		nil, []byte("scjb"), []byte("scjb\x02\x01"), []byte("scjb\x01\x09"), good[0][:len(good[0])-1],
		append(bytes.Clone(good[1]), 0),
		encodeRecords([]*record{{jid: "j", name: "../m1", ret: true}}),
		encodeRecords([]*record{{jid: "j", name: ".hidden", ret: true}}),
		encodeRecords([]*record{{jid: "j", name: jidFile, ret: true}}),
		encodeRecords([]*record{{jid: "j", name: "/etc/passwd"}}),
		encodeRecords([]*record{{jid: "j", name: ".minions./../x.p"}}),
		encodeRecords([]*record{{jid: "j\n", name: loadFile}}),
		encodeRecords([]*record{{jid: "", name: loadFile}}),
		append(format.Begin(kindRecords), 0xff, 0xff, 0xff, 0xff, 0x7f),
	} {
		if m, err := decode(b); err == nil {
			t.Errorf("%q was taken: %+v", b, m)
		}
	}
	for _, b := range [][]byte{nil, {0}, {0, 1, 5, 1}, {9, 0}, {0, 2, 0, 1}} {
		if w, err := decodeWish(b, 3, true); err == nil {
			t.Errorf("%q was taken: %+v", b, w)
		}
	}
}

func encode(m message) []byte {
	switch m.kind {
	case kindDigest:
		return encodeDigest(m.digest)
	case kindItems:
		return encodeItems(m.items)
	case kindRecords:
		return encodeRecords(m.records)
	case kindFind:
		return encodeFind(m.jid)
	default:
		return encodeList(m.count)
	}
}

func FuzzDecode(f *testing.F) {
	for _, b := range samples() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(b)
		if err != nil {
			return
		}
		again, err := decode(encode(m))
		if err != nil || !reflect.DeepEqual(again.digest, m.digest) || len(again.records) != len(m.records) {
			t.Errorf("%q is read as %+v and then as %+v, %v", b, m, again, err)
		}
	})
}

func FuzzDecodeWish(f *testing.F) {
	f.Add(wish{which: []int{1}, how: []byte{1}}.encode(), 2, true)
	f.Add(wish{flags: 1}.encode(), 0, false)
	f.Fuzz(func(t *testing.T, b []byte, n int, ofDigest bool) {
		if n < 0 || n > 1<<20 {
			return
		}
		w, err := decodeWish(b, n, ofDigest)
		for _, i := range w.which {
			if err == nil && i >= n {
				t.Errorf("%d of %d", i, n)
			}
		}
	})
}

// FuzzDecodeSummaries: what can be read is told again as it was read.
func FuzzDecodeSummaries(f *testing.F) {
	f.Add([]byte(`[{"JID":"20260102000000000001","Function":"test.ping","Target":"*","Minions":2,"Nodes":["a"]}]`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := decodeSummaries(b)
		if err != nil {
			return
		}
		raw, err := json.Marshal(all)
		require.NoError(t, err)
		if again, err := decodeSummaries(raw); err != nil || !reflect.DeepEqual(again, all) {
			t.Errorf("%q is read as %+v and then as %+v, %v", b, all, again, err)
		}
	})
}

func TestAheadOnTheWire(t *testing.T) {
	b := encodeRecords([]*record{{jid: "j", name: "m1", ret: true, ahead: true}, {jid: "j", name: "m2", ret: true}})
	m, err := decode(b)
	if err != nil || !m.records[0].ahead || m.records[1].ahead || m.records[0].mtime != 0 || !bytes.Equal(encode(m), b) {
		t.Errorf("%+v, %v", m, err)
	}
}
