package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// filled has something of everything; rootsFilled and firstFilled of what
// earlier releases knew.
func filled(t testing.TB) *State {
	t.Helper()
	s := rootsFilled(t)
	s.Apply(3, Entry{Requests: []Request{{ID: "m1/3", Commands: []Command{
		TokenAdd{ID: "tokenone", Public: testPublic('1'), Expires: 90, Note: "for m3", Audit: Audit{By: "m1", At: 8}},
		TokenAdd{ID: "tokentwo", Public: testPublic('2'), Expires: 90, For: "m4"},
		JoinAdmit{Member: MemberAdd{ID: "m3", Addr: "h:3", Fingerprint: testFP('c'), Weight: 5}, Token: "tokenone",
			Audit: Audit{By: "m2", At: 9}},
		JoinSecretSet{Key: testJoinSecret('x'), Keep: true},
		JoinSecretSet{Expect: 1, Key: testJoinSecret('y'), Keep: true, Audit: Audit{By: "m1", At: 9, Cause: "rotate"}},
		MemberCert{ID: "m2", Expect: testFP('b'), Fingerprint: testFP('d')},
	}}}})
	return s
}

func rootsFilled(t testing.TB) *State {
	t.Helper()
	s := firstFilled(t)
	s.Apply(2, Entry{Requests: []Request{{ID: "m1/2", Commands: []Command{
		RootsPropose{Author: "m1", Root: testFP('1'), Kind: "first", Audit: Audit{By: "m1", At: 7}},
		RootsPropose{Parent: 1, Author: "m2", Root: testFP('2'), Kind: "edit", Held: true, Note: "deletes much"},
		RootsPropose{Parent: 1, Author: "m1", Root: testFP('3'), Kind: "edit", Held: true},
		RootsDrop{Number: 3},
		RootsPropose{Parent: 1, Author: "m1", Root: testFP('4'), Kind: "merge",
			Stats: RootsStats{Files: 3, Bytes: 9, Removed: 1}},
	}}}})
	return s
}

func firstFilled(t testing.TB) *State {
	t.Helper()
	s := born(t)
	s.Apply(2, Entry{Requests: []Request{{ID: "m1/1", Commands: []Command{
		MemberAdd{ID: "m2", Addr: "h:1", Fingerprint: testFP('b'), Weight: 5},
		KeySet{ID: "a", State: KeyAccepted, Pub: "P<>\n", Audit: Audit{By: "m2", At: 3, Cause: "salt-key"}},
		KeySet{ID: "b", State: KeyPending, Pub: "P"},
		KeySet{ID: "c", State: KeyPending, Pub: "P"},
		KeySet{ID: "b", BaseRev: 4},
		KeySet{ID: "c", BaseRev: 5},
		TombstonesPrune{UpToRev: 6},
		DeniedSet{ID: "a", Pub: "EVIL"},
		EpochRotate{Expect: 1, Key: testEpochKey('B'), Reason: "time"},
		GossipKeyAdd{Expect: 1, Key: SecretText(strings.Repeat("h", 32))},
		MemberRemove{ID: "nobody"},
	}}}})
	return s
}

func TestSnapshotRoundTrip(t *testing.T) {
	for name, s := range map[string]*State{"empty": New(), "born": born(t), "filled": filled(t)} {
		text := dump(t, s.View())
		got, err := ReadSnapshot(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again := dump(t, got.View()); again != text {
			t.Errorf("%s: after the round trip\n%s\nbefore\n%s", name, again, text)
		}
		check(t, got)
		// The copy goes on like the original.
		more := Entry{Requests: []Request{{ID: "m1/1", Commands: allCommands()}, {ID: "m1/2", Commands: allCommands()}}}
		s.Apply(9, more)
		got.Apply(9, more)
		if dump(t, s.View()) != dump(t, got.View()) {
			t.Errorf("%s: original and copy part", name)
		}
	}
}

func TestSnapshotRefuses(t *testing.T) {
	text := dump(t, filled(t).View())
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	without := func(kind string) string {
		var out []string
		for _, l := range lines[:len(lines)-1] {
			if !strings.Contains(l, `"t":"`+kind+`"`) {
				out = append(out, l)
			}
		}
		return strings.Join(out, "") + fmt.Sprintf(`{"v":1,"t":"end","d":{"records":%d}}`, len(out))
	}
	for i := range lines {
		if _, err := ReadSnapshot(strings.NewReader(strings.Join(lines[:i], ""))); !errors.Is(err, ErrMalformed) {
			t.Errorf("cut after %d records: %v", i, err)
		}
		if i > 0 && i < len(lines)-1 {
			twice := strings.Join(lines[:i], "") + lines[i] + strings.Join(lines[i:], "")
			if _, err := ReadSnapshot(strings.NewReader(twice)); !errors.Is(err, ErrMalformed) {
				t.Errorf("record %d twice: %v", i, err)
			}
		}
	}
	for _, kind := range []string{recHeader, recIdentity, recSeed, recEpoch, recGossip, recMember} {
		if _, err := ReadSnapshot(strings.NewReader(without(kind))); !errors.Is(err, ErrMalformed) {
			t.Errorf("without %s: %v", kind, err)
		}
	}
	insert := func(rec string) string {
		body := append(append([]string{}, lines[:1]...), rec+"\n")
		body = append(body, lines[1:len(lines)-1]...)
		return strings.Join(body, "") + fmt.Sprintf(`{"v":1,"t":"end","d":{"records":%d}}`, len(lines))
	}
	for rec, want := range map[string]error{
		`{"v":1,"t":"tree","i":true,"d":{"x":1}}`:                                 nil,
		`{"v":2,"t":"key","i":true,"d":{"x":1}}`:                                  nil,
		`{"v":1,"t":"tree","d":{"x":1}}`:                                          ErrUnsupported,
		`{"v":2,"t":"key","d":{"x":1}}`:                                           ErrUnsupported,
		`{"v":1,"t":"key","d":{"id":"z","state":"pending","pub":"P","rev":99}}`:   ErrMalformed,
		`{"v":1,"t":"key","d":{"id":"../z","state":"pending","pub":"P","rev":5}}`: ErrMalformed,
		`{"v":1,"t":"key","d":{"id":"z","state":"","pub":"P","rev":5}}`:           ErrMalformed,
		`{"v":1,"t":"saltclusterd.state","d":{"rev":1}}`:                          ErrMalformed,
		`{"v":1,"t":"key","d":{"id":"` + strings.Repeat("x", MaxRecord) + `"}}`:   ErrMalformed,
	} {
		if _, err := ReadSnapshot(strings.NewReader(insert(rec))); !errors.Is(err, want) {
			t.Errorf("%.60s: %v", rec, err)
		}
	}
	if _, err := ReadSnapshot(strings.NewReader(text + lines[1])); !errors.Is(err, ErrMalformed) {
		t.Errorf("records after the end: %v", err)
	}
}

type fullDisk struct{ room int }

func (f *fullDisk) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(b), nil
}

func TestSnapshotWriteFails(t *testing.T) {
	for _, room := range []int{0, 100} {
		if err := filled(t).View().WriteSnapshot(&fullDisk{room}); err == nil {
			t.Error("a failed write was not told")
		}
	}
}
