package archive

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sample() (Header, Content) {
	return Header{
		ClusterID: "lab", UUID: "u", Generation: 2, IdentityFingerprint: "ab", Node: "m1", Version: "1", Index: 7, Rev: 5, Epoch: 3,
		Created: time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC), Members: []string{"m1", "m2"}, Keys: Counts{Accepted: 3},
	}, Content{Private: []byte("PRIVATE"), Public: []byte("PUBLIC"), Clock: 9, State: []byte("STATE")}
}

func file(t testing.TB, passphrase string) []byte {
	t.Helper()
	h, c := sample()
	var b bytes.Buffer
	if err := Write(&b, h, c, []byte(passphrase)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	h, c := sample()
	for _, passphrase := range []string{"", "correct horse"} {
		b := file(t, passphrase)
		if sealed := !bytes.Contains(b, []byte("PRIVATE")); sealed != (passphrase != "") {
			t.Errorf("passphrase %q: sealed %v", passphrase, sealed)
		}
		seen, err := Inspect(bytes.NewReader(b))
		if err != nil || seen.UUID != "u" || (seen.Sealed != nil) != (passphrase != "") {
			t.Errorf("inspect: %+v, %v", seen, err)
		}
		gotH, gotC, err := Read(bytes.NewReader(b), []byte(passphrase))
		gotH.Sealed = nil
		if err != nil || !reflect.DeepEqual(gotH, h) || !reflect.DeepEqual(gotC, c) {
			t.Errorf("read %+v %+v, %v", gotH, gotC, err)
		}
	}
}

func TestDamage(t *testing.T) {
	good := file(t, "")
	newer := bytes.Clone(good)
	newer[len(magic)] = 2
	flipped := bytes.Clone(good)
	flipped[len(flipped)-40] ^= 1
	for name, tc := range map[string]struct {
		b    []byte
		want error
	}{
		"empty": {nil, ErrFormat}, "text": {[]byte(strings.Repeat("x", 100)), ErrFormat}, "newer": {newer, ErrVersion},
		"cut": {good[:len(good)-1], ErrFormat}, "cut in the body": {good[:len(good)-40], ErrFormat}, "cut in the header": {good[:40], ErrFormat},
		"longer": {append(bytes.Clone(good), 0), ErrFormat}, "flipped": {flipped, ErrChecksum},
	} {
		if _, err := Inspect(bytes.NewReader(tc.b)); !errors.Is(err, tc.want) {
			t.Errorf("%s: inspect: %v", name, err)
		}
		if _, _, err := Read(bytes.NewReader(tc.b), nil); !errors.Is(err, tc.want) {
			t.Errorf("%s: read: %v", name, err)
		}
	}
}

func TestPassphrase(t *testing.T) {
	b := file(t, "correct horse")
	for _, p := range []string{"", "battery staple"} {
		if _, c, err := Read(bytes.NewReader(b), []byte(p)); !errors.Is(err, ErrPassphrase) || c.State != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
}

// FuzzRead feeds the decoder: no panic, and what is accepted is what was written.
func FuzzRead(f *testing.F) {
	f.Add(file(f, ""))
	f.Add(file(f, "p"))
	f.Add([]byte(magic + "\x01\xff\xff\xff\xff"))
	f.Add([]byte(magic + "\x01\x00\x00\x00\x02{}\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, c, err := Read(bytes.NewReader(b), nil)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := Write(&again, h, c, nil); err != nil {
			t.Fatal(err)
		}
		if _, d, err := Read(&again, nil); err != nil || !bytes.Equal(d.State, c.State) || !bytes.Equal(d.Private, c.Private) {
			t.Errorf("%+v, then %+v, %v", c, d, err)
		}
	})
}
