package archive

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

func sample() (Header, Content) {
	return Header{
		ClusterID: "lab", UUID: "u", Generation: 2, IdentityFingerprint: "ab", Node: "m1", Version: "1", Index: 7, Rev: 5,
		Epoch:   3,
		Created: time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC), Members: []string{"m1", "m2"}, Keys: Counts{Accepted: 3},
	}, Content{Private: []byte("PRIVATE"), Public: []byte("PUBLIC"), Clock: 9, State: []byte("STATE")}
}

func file(t testing.TB) []byte {
	t.Helper()
	h, c := sample()
	var b bytes.Buffer
	require.NoError(t, Write(&b, h, c))
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	h, c := sample()
	b := file(t)
	if seen, err := Inspect(bytes.NewReader(b)); err != nil || !reflect.DeepEqual(seen, h) {
		t.Errorf("inspect: %+v, %v", seen, err)
	}
	gotH, gotC, err := Read(bytes.NewReader(b))
	if err != nil || !reflect.DeepEqual(gotH, h) || !reflect.DeepEqual(gotC, c) {
		t.Errorf("read %+v %+v, %v", gotH, gotC, err)
	}
}

func TestDamage(t *testing.T) {
	good := file(t)
	newer := bytes.Clone(good)
	newer[len(magic)] = 2
	flipped := bytes.Clone(good)
	flipped[len(flipped)-40] ^= 1
	for name, tc := range map[string]struct {
		b    []byte
		want error
	}{
		"empty": {nil, ErrFormat}, "text": {[]byte(strings.Repeat("x", 100)), ErrFormat}, "newer": {newer, ErrVersion},
		"cut": {good[:len(good)-1], ErrFormat}, "cut in the body": {good[:len(good)-40], ErrFormat},
		"cut in the header": {good[:40], ErrFormat},
		"longer":            {append(bytes.Clone(good), 0), ErrFormat}, "flipped": {flipped, ErrChecksum},
	} {
		if _, err := Inspect(bytes.NewReader(tc.b)); !errors.Is(err, tc.want) {
			t.Errorf("%s: inspect: %v", name, err)
		}
		if _, _, err := Read(bytes.NewReader(tc.b)); !errors.Is(err, tc.want) {
			t.Errorf("%s: read: %v", name, err)
		}
	}
}

// FuzzRead feeds the decoder: no panic, and what is accepted is what was written.
func FuzzRead(f *testing.F) {
	f.Add(file(f))
	f.Add([]byte(magic + "\x01\xff\xff\xff\xff"))
	f.Add([]byte(magic + "\x01\x00\x00\x00\x02{}\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, c, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		var again bytes.Buffer
		require.NoError(t, Write(&again, h, c))
		if _, d, err := Read(&again); err != nil || !bytes.Equal(d.State, c.State) || !bytes.Equal(d.Private, c.Private) {
			t.Errorf("%+v, then %+v, %v", c, d, err)
		}
	})
}
