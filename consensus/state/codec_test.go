package state

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

// allCommands is every command there is; firstCommands are those of the first
// release, which the fixture of version 1 holds.
func allCommands() []Command {
	return slices.Concat(firstCommands(), rootsCommands(), joinCommands(), levelCommands(), identityCommands(),
		seedCommands())
}

func firstCommands() []Command {
	a := Audit{By: "m1", At: 5, Cause: "test"}
	return []Command{
		testInit(),
		MemberAdd{ID: "m2", Addr: "h:1", Fingerprint: testFP('b'), Weight: 7, Witness: true, Audit: a},
		MemberRemove{ID: "m2", Audit: a},
		MemberSet{ID: "m2", Addr: ptr("h:2"), Weight: ptr(3), Draining: ptr(false), NonVoter: ptr(true), Audit: a},
		KeySet{ID: "wéb", State: KeyAccepted, Pub: "-----BEGIN\n<&>\n", BaseRev: 3, SeenRev: 9, Audit: a},
		TombstonesPrune{UpToRev: 3, Before: 4, Keep: 5, Audit: a},
		DeniedSet{ID: "x", Pub: "P", Audit: a},
		DeniedClear{ID: "x", Pub: "P", Audit: a},
		EpochRotate{Expect: 4, Key: testEpochKey('B'), Reason: "key deleted", Audit: a},
		GossipKeyAdd{Expect: 4, Key: NewSecret([]byte("\x00\xff0123456789abcdef0123456789abcd")), Audit: a},
		GossipKeyDrop{N: 4, Audit: a},
	}
}

func TestCommandRoundTrip(t *testing.T) {
	for _, c := range allCommands() {
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", c.Type(), err)
		}
		b, err := EncodeCommand(c)
		require.NoError(t, err)
		got, err := DecodeCommand(b)
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%s: %v\n got %#v", c.Type(), err, got)
		}
		if s := Stamp(c, Audit{By: "zz", At: 99}, 0); !reflect.DeepEqual(s, c) {
			t.Errorf("%s: a stamp replaced what was there: %+v", c.Type(), s)
		}
	}
	for _, c := range allCommands() {
		v := reflect.New(reflect.TypeOf(c)).Elem().Interface().(Command)
		s := reflect.ValueOf(Stamp(v, Audit{By: "zz", At: 99}, 7))
		if s.FieldByName("By").String() != "zz" || s.FieldByName("At").Int() != 99 {
			t.Errorf("%s is not stamped", c.Type())
		}
	}
}

func TestDecodeCommandRefuses(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want error
	}{
		{``, ErrMalformed},
		{`null`, ErrUnsupported},
		{`{}`, ErrUnsupported},
		{`[]`, ErrMalformed},
		{`{"v":1,"t":"key.set","d":{}}}`, ErrMalformed},
		{`{"v":1,"t":"key.set","d":{}} x`, ErrMalformed},
		{`{"v":0,"t":"key.set","d":{}}`, ErrMalformed},
		{`{"v":1,"t":"key.set"}`, ErrMalformed},
		{`{"v":1,"t":"key.set","d":{"later":1}}`, ErrMalformed},
		{`{"v":1,"t":"key.set","d":{"base_rev":-1}}`, ErrMalformed},
		{`{"v":1,"t":"key.set","x":1}`, ErrMalformed},
		{`{"v":2,"t":"key.set","d":{}}`, ErrUnsupported},
		{`{"v":1,"t":"from.the.future","d":{"a":[1]}}`, ErrUnsupported},
		{`{"v":1,"t":"` + strings.Repeat("[", 50000) + `"}`, ErrUnsupported},
		{strings.Repeat(`{"d":`, 20000), ErrMalformed},
	} {
		c, err := DecodeCommand([]byte(tc.in))
		if !errors.Is(err, tc.want) {
			t.Errorf("%.60s: %v, %v", tc.in, c, err)
		}
	}
	c, err := DecodeCommand([]byte(`{"v":9,"t":"from.the.future","i":true,"d":{"a":[1]}}`))
	require.NoError(t, err)
	s := born(t)
	before := s.View().Rev()
	if r := s.ApplyCommands(c)[0]; r.Code != Ignored || s.View().Rev() != before {
		t.Errorf("ignorable: %+v", r)
	}
	if b, err := EncodeCommand(c); err != nil || !strings.Contains(string(b), `"i":true`) {
		t.Errorf("an ignorable command does not survive forwarding: %s %v", b, err)
	}
}

func TestEntryRoundTrip(t *testing.T) {
	e := Entry{Requests: []Request{
		{ID: "m1/1", Since: 4, Commands: allCommands()},
		{ID: "m1/2", Since: 5, Retry: true, Commands: []Command{DeniedClear{ID: "x"}}},
	}}
	b, err := EncodeEntry(e)
	require.NoError(t, err)
	if got, err := DecodeEntry(b); err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("%v\n got %#v", err, got)
	}
	if _, err := DecodeRequest(b); !errors.Is(err, ErrMalformed) {
		t.Errorf("two requests for one: %v", err)
	}
	b, _ = EncodeRequest(e.Requests[0])
	if got, err := DecodeRequest(b); err != nil || !reflect.DeepEqual(got, e.Requests[0]) {
		t.Errorf("request: %v\n got %#v", err, got)
	}
}

func TestDecodeEntry(t *testing.T) {
	ok := `{"v":1,"t":"denied.set","d":{"id":"a","pub":"P"}}`
	bad := `{"v":1,"t":"denied.set","d":{"id":7}}`
	e, err := DecodeEntry([]byte(`{"v":1,"t":"entry","r":[{"id":"q","c":[` + bad + `,` + ok + `]}]}`))
	require.NoError(t, err)
	if r := born(t).Apply(2, e)[0]; r[0].Code != Invalid || r[1].Code != OK {
		t.Errorf("a malformed command disturbs its neighbour: %+v", r)
	}
	for in, want := range map[string]error{
		`{"v":2,"t":"entry","r":[]}`:                                ErrUnsupported,
		`{"v":1,"t":"later","r":[]}`:                                ErrUnsupported,
		`{"v":1,"t":"entry","r":[{"c":[{"v":1,"t":"new","d":1}]}]}`: ErrUnsupported,
		`{"v":1,"t":"entry","r":[{"c":[],"new":1}]}`:                ErrMalformed,
		`{"v":0,"t":"entry","r":[]}`:                                ErrMalformed,
		`garbage`:                                                   ErrMalformed,
		`{"v":1,"t":"entry","r":[{"id":"` + strings.Repeat("x", MaxID+1) + `","c":[]}]}`: ErrMalformed,
		strings.Repeat(" ", MaxEntry+1): ErrMalformed,
	} {
		if _, err := DecodeEntry([]byte(in)); !errors.Is(err, want) {
			t.Errorf("%.70s: %v", in, err)
		}
	}
	huge := Request{Commands: []Command{DeniedSet{ID: "x", Pub: strings.Repeat("p", MaxEntry)}}}
	if _, err := EncodeRequest(huge); err == nil {
		t.Error("an entry beyond the bound was encoded")
	}
}

func TestRequestValidate(t *testing.T) {
	one := []Command{DeniedClear{ID: "x"}}
	for name, r := range map[string]Request{
		"no commands":  {},
		"nil command":  {Commands: []Command{nil}},
		"bad command":  {Commands: []Command{DeniedClear{}}},
		"long id":      {ID: strings.Repeat("x", MaxID+1), Commands: one},
		"control byte": {ID: "a\nb", Commands: one},
		"too many":     {Commands: make([]Command, MaxCommands+1)},
	} {
		if r.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := (Request{ID: "m1/1", Commands: one}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidMinionID(t *testing.T) {
	for id, ok := range map[string]bool{
		"web1": true, "Web-1.example.com": true, "wéb": true, "a b": true, strings.Repeat("x", MaxID): true,
		"": false, ".hidden": false, "..": false, "a/b": false, `a\b`: false, "a\x00": false, "a\n": false,
		"\xff": false, strings.Repeat("x", MaxID+1): false,
	} {
		if err := ValidMinionID(id); (err == nil) != ok {
			t.Errorf("%q: %v", id, err)
		}
	}
}
