package saltwire

import (
	"strings"
	"testing"
)

func TestPeekLoad(t *testing.T) {
	p, err := PeekLoad(mp(t, map[string]any{
		"cmd": "_return", "id": "m1", "nonce": "n", "jid": "20200101000000000000", "master_id": "node",
		"fun": []any{"a.b", "c.d"},
		"ts":  1700000000, "tok": []byte{1, 2}, "sig": []byte{3}, "return": map[string]any{"x": []any{1, 2}},
		"events": []any{}, "tag": nil,
	}))
	if err != nil || p.Cmd != "_return" || p.ID != "m1" || p.Nonce != "n" || p.JID != "20200101000000000000" ||
		p.MasterID != "node" ||
		p.Fun != "a.b" || p.TS != 1700000000 || !p.HasTS || !p.HasTok || string(p.Tok) != "\x01\x02" || !p.HasSig ||
		p.Events == nil {
		t.Errorf("%+v, %v", p, err)
	}
	for path, want := range map[string]any{"a/b": "a/b", "c/d/e": []any{"c", "d", "e"}, "": 5} {
		if p, err := PeekLoad(mp(t, map[string]any{"cmd": "x", "path": want})); err != nil || p.Path != path {
			t.Errorf("path %v: %q, %v", want, p.Path, err)
		}
	}
	if p, err := PeekLoad(mp(t, map[string]any{"cmd": "pub_ret", "jid": uint64(20200101000000000000 / 2)})); err != nil ||
		p.JID != "10100050500000000000" {
		t.Errorf("number as jid: %q, %v", p.JID, err)
	}
}

// What minions echo and masters do not look at may be anything.
func TestPeekLoadEchoes(t *testing.T) {
	for value, want := range map[string]any{
		"\xa1n": "n", "\xc4\x01n": "n", "\x07": "7", "\xff": "-1",
		"\xcf\xff\xff\xff\xff\xff\xff\xff\xff": "18446744073709551615",
		"\xc0":                                 "", "\xc3": "", "\x80": "", "\x90": "", "\x91\xa1n": "", "\xa0": "", raw(strings.Repeat("n", maxID+1)): "",
	} {
		if p, err := PeekLoad(rawMap("cmd", raw("x"), "master_id", value)); err != nil || p.MasterID != want {
			t.Errorf("master_id %.20q: %q, %v", value, p.MasterID, err)
		}
	}
	for value, want := range map[string]string{
		"\xa1j": "j", "\x07": "7", "\xff": "", "\xc0": "", "\xc3": "", "\xcb?\xf8\x00\x00\x00\x00\x00\x00": "", "\x90": "",
		"\x81\xa1a\x01": "",
	} {
		p, err := PeekLoad(rawMap("cmd", raw("x"), "jid", value))
		if err != nil || p.JID != want || p.NoJID != (value[0]&0xe0 == 0x80) {
			t.Errorf("jid %.20q: %q, %v, %v", value, p.JID, p.NoJID, err)
		}
	}
	for value, want := range map[string]any{
		"\xa1f": "f", "\x92\xa1f\xa1g": "f", "\x91\xc4\x01f": "f", "\x91\xc0": "", "\x90": "", "\x80": "", "\x05": "",
		"\xc0":          "",
		"\x91\x91\xa1f": "", raw(strings.Repeat("f", maxName+1)): "",
	} {
		if p, err := PeekLoad(rawMap("cmd", raw("x"), "fun", value)); err != nil || p.Fun != want {
			t.Errorf("fun %.20q: %q, %v", value, p.Fun, err)
		}
	}
}

// A minion pushes whatever file it has, and file systems have paths of up to 4,095 bytes.
func TestPeekLoadTakesLongPaths(t *testing.T) {
	name := raw(strings.Repeat("d", 255))
	plain := rawMap("cmd", raw("_file_recv"), "path", "\x98"+strings.Repeat(name, 8))
	if p, err := PeekLoad(plain); err != nil || len(p.Path) != maxName {
		t.Errorf("a path of 8 names: %d bytes of it, %v", len(p.Path), err)
	}
}

func TestPeekLoadRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		plain      []byte
	}{
		{"nil", ReasonNotMap, []byte{0xc0}},
		{"no cmd", ReasonMissing, rawMap("id", raw("m"))},
		{"cmd twice", ReasonDuplicate, rawMap("cmd", raw("ping"), "cmd", raw("wheel"))},
		{"id twice, as bin", ReasonDuplicate, append([]byte{0x83}, "\xa3cmd\xa1x\xa2id\xa1a\xc4\x02id\xa1b"...)},
		{"id int", ReasonType, rawMap("cmd", raw("x"), "id", "\x01")},
		{"tok text twice", ReasonDuplicate, rawMap("cmd", raw("x"), "tok", raw("a"), "tok", raw("b"))},
		{"ts text", ReasonType, rawMap("cmd", raw("x"), "ts", raw("1"))},
		{"jid twice", ReasonDuplicate, rawMap("cmd", raw("x"), "jid", "\xc3", "jid", raw("a"))},
		{"tag twice", ReasonDuplicate, rawMap("cmd", raw("x"), "tag", "\x90", "tag", raw("a"))},
		{"fun twice", ReasonDuplicate, rawMap("cmd", raw("x"), "fun", "\x91\x01", "fun", raw("a"))},
		{"master_id twice", ReasonDuplicate, rawMap("cmd", raw("x"), "master_id", "\x80", "master_id", raw("a"))},
		{"cmd long", ReasonSize, rawMap("cmd", raw(strings.Repeat("c", 65)))},
		{"trailing", ReasonTrailing, append(rawMap("cmd", raw("x")), 0)},
		{"int key", ReasonKeyType, []byte{0x81, 1, 1}},
		{"syndic of strings", ReasonNotMap, rawMap("cmd", raw("_syndic_return"), "load", "\x91\xa1x")},
	} {
		_, err := PeekLoad(c.plain)
		if got := reason(t, err); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestSyndic(t *testing.T) {
	one := map[string]any{"jid": "j1", "master_id": "n1", "return": "a"}
	two := map[string]any{"jid": "j2", "master_id": "n1"}
	load := func(loads ...any) []byte { return mp(t, map[string]any{"cmd": "_syndic_return", "load": loads}) }
	if p, err := PeekLoad(load(one, one)); err != nil || p.JID != "j1" || p.MasterID != "n1" || p.Mixed {
		t.Errorf("%+v, %v", p, err)
	}
	p, err := PeekLoad(load(one, two))
	if err != nil || p.JID != "j1" || !p.Mixed {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := PeekLoad(load(nil)); err == nil {
		t.Error("a nil load")
	}
}

func TestPeekPub(t *testing.T) {
	p, err := PeekPub(mp(t, map[string]any{"jid": "j", "fun": "test.ping", "tgt": "a,b", "tgt_type": "list",
		"user": "root", "serial": 7, "arg": []any{}}))
	if err != nil || strings.Join(p.Targets, "|") != "a|b" || p.Serial != 7 || !p.HasSerial || p.User != "root" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := PeekPub(mp(t, map[string]any{"tgt": []any{"x", "y"}, "tgt_type": "grain", "user": nil})); err != nil ||
		len(p.Targets) != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := PeekPub(mp(t, map[string]any{"tgt": "a,b", "tgt_type": "glob"})); err != nil || p.Targets != nil {
		t.Errorf("%+v, %v", p, err)
	}
	for name, plain := range map[string][]byte{
		"serial -1": rawMap("serial", "\xff"), "serial twice": rawMap("serial", "\x01", "serial", "\x02"),
		"tgt of ints": rawMap("tgt", "\x91\x01"),
	} {
		if _, err := PeekPub(plain); err == nil {
			t.Error(name)
		}
	}
	for name, body := range map[string][]byte{
		"clear": rawMap("enc", raw("clear"), "load", raw("x")), "no enc": rawMap("load", raw("x")),
		"no load":   rawMap("enc", raw("aes")),
		"load map":  rawMap("enc", raw("aes"), "load", "\x80"),
		"two loads": rawMap("enc", raw("aes"), "load", raw("x"), "load", raw("y")),
		"algorithm": rawMap("enc", raw("aes"), "load", raw("x"), "sig_algo", raw("none")),
	} {
		if _, err := ParsePub(body); err == nil {
			t.Error(name)
		}
	}
	if p, err := ParsePub(AppendPub(nil, []byte("x"), nil, "")); err != nil || p.Sig != nil || string(p.Load) != "x" {
		t.Errorf("unsigned: %+v, %v", p, err)
	}
}

func TestSetSerial(t *testing.T) {
	for _, n := range []int{0, 1, 14, 15, 16, 65534, 65535, 65536} {
		plain := AppendMapHeader(nil, n)
		for range n {
			plain = append(plain, 0xa1, 'k', 0x01)
		}
		with, err := SetSerial([]byte("kept"), plain, 1<<63)
		if err != nil || string(with[:4]) != "kept" {
			t.Fatal(n, err)
		}
		p, err := PeekPub(with[4:])
		if err != nil || p.Serial != 1<<63 {
			t.Errorf("%d entries: %+v, %v", n, p, err)
		}
		if again, err := SetSerial(nil, with[4:], 5); err != nil || len(again) != len(with)-4-8 {
			t.Errorf("%d entries: %d bytes, %v", n, len(again), err)
		}
	}
	for name, plain := range map[string][]byte{"list": {0x90}, "twice": rawMap("serial", "\x01", "serial", "\x02"),
		"cut": {0x81, 0xa1}} {
		if got, err := SetSerial([]byte("kept"), plain, 1); err == nil || string(got) != "kept" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestPrivateRefuses(t *testing.T) {
	for name, body := range map[string][]byte{
		"error": rawMap("error", raw("bad load")), "string": BadLoad(), "key map": rawMap("key", "\x80", "pillar", raw("x")),
		"two keys": rawMap("key", raw("x"), "key", raw("y")),
	} {
		if _, err := ParsePrivateReply(body); err == nil {
			t.Error(name)
		}
	}
	if _, err := ParsePrivateData(rawMap("key", raw("k"), "nonce", raw("n"))); reason(t, err) != ReasonMissing {
		t.Errorf("no pillar: %v", err)
	}
}
