package state

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func testPublic(c byte) []byte { return bytes.Repeat([]byte{c}, 32) }

func testJoinSecret(c byte) Secret { return SecretText(strings.Repeat(string(c), 30)) }

// joinCommands is what decides who may join.
func joinCommands() []Command {
	a := Audit{By: "m1", At: 5, Cause: "test"}
	return []Command{
		TokenAdd{ID: "k7m2q9x4ab", Public: testPublic('1'), Expires: 60, For: "m3", Note: "the new one", Audit: a},
		TokenDrop{ID: "k7m2q9x4ab", Audit: a},
		JoinAdmit{Member: MemberAdd{ID: "m3", Addr: "h:3", Fingerprint: testFP('c'), Weight: 7, Witness: true},
			Token: "k7m2q9x4ab", Audit: a},
		JoinAdmit{Member: MemberAdd{ID: "m3", Addr: "h:3", Fingerprint: testFP('c'), Weight: 7}, Secret: 2, Audit: a},
		MemberCert{ID: "m1", Expect: testFP('a'), Fingerprint: testFP('e'), Audit: a},
		JoinSecretSet{Expect: 3, Key: NewSecret([]byte("\x00\xff secret of the cluster here")), Keep: true, Audit: a},
		JoinSecretDrop{N: 3, Audit: a},
	}
}

func TestJoinTokens(t *testing.T) {
	at := func(ms int64) Audit { return Audit{By: "m1", At: ms} }
	m2 := MemberAdd{ID: "m2", Addr: "h:2", Fingerprint: testFP('b'), Weight: 1}
	m3 := MemberAdd{ID: "m3", Addr: "h:3", Fingerprint: testFP('c'), Weight: 1}
	other := m2
	other.Fingerprint = testFP('d')
	one := TokenAdd{ID: "tokenone", Public: testPublic('1'), Expires: 100, Audit: at(10)}
	bound := TokenAdd{ID: "tokentwo", Public: testPublic('2'), Expires: 100, For: "m3", Audit: at(10)}
	s := born(t)
	for _, step := range []struct {
		name string
		cmd  Command
		code Code
		says string
	}{
		{"unknown", JoinAdmit{Member: m2, Token: "tokenone", Audit: at(11)}, NotFound, "revoked"},
		{"made", one, OK, ""},
		{"made again", one, Conflict, ""},
		{"short key", TokenAdd{ID: "short", Public: []byte{1}, Expires: 1}, Invalid, "Ed25519"},
		{"no expiry", TokenAdd{ID: "forever", Public: testPublic('1')}, Invalid, "never expires"},
		{"odd id", TokenAdd{ID: "Tok/en", Public: testPublic('1'), Expires: 1}, Invalid, "lower-case"},
		{"too late", JoinAdmit{Member: m2, Token: "tokenone", Audit: at(101)}, Conflict, "expired"},
		{"a refused member uses nothing up", JoinAdmit{Member: MemberAdd{ID: "m2", Addr: "10.0.0.1:4520",
			Fingerprint: testFP('b'), Weight: 1}, Token: "tokenone", Audit: at(50)}, Conflict, "address"},
		{"used", JoinAdmit{Member: m2, Token: "tokenone", Audit: at(100)}, OK, ""},
		{"by another", JoinAdmit{Member: m3, Token: "tokenone", Audit: at(50)}, Conflict, "used by m2"},
		{"by another certificate", JoinAdmit{Member: other, Token: "tokenone", Audit: at(50)}, Conflict, "used by m2"},
		{"the answer was lost", JoinAdmit{Member: m2, Token: "tokenone", Audit: at(300)}, OK, ""},
		{"removed", MemberRemove{ID: "m2"}, OK, ""},
		{"not again after a removal", JoinAdmit{Member: m2, Token: "tokenone", Audit: at(50)}, Conflict, "used by m2"},
		{"bound", bound, OK, ""},
		{"not for it", JoinAdmit{Member: m2, Token: "tokentwo", Audit: at(50)}, Conflict, "for the node m3"},
		{"revoked", TokenDrop{ID: "tokentwo"}, OK, ""},
		{"revoked again", TokenDrop{ID: "tokentwo"}, NotFound, ""},
		{"after that", JoinAdmit{Member: m3, Token: "tokentwo", Audit: at(50)}, NotFound, "revoked"},
		{"nobody else", JoinAdmit{Member: m3, Secret: 1, Audit: at(50)}, Conflict, "secret was changed"},
	} {
		r := s.ApplyCommands(step.cmd)[0]
		if r.Code != step.code || !strings.Contains(r.Message, step.says) {
			t.Errorf("%s: %+v", step.name, r)
		}
		check(t, s)
	}
	if tok, ok := s.View().JoinToken("tokenone"); !ok || tok.Used != (TokenUse{"m2", testFP('b'), 100}) {
		t.Errorf("the token says %+v", tok)
	}
}

func TestJoinTokensAreForgotten(t *testing.T) {
	s := born(t)
	add := func(n int, at, expires int64) Result {
		return s.ApplyCommands(TokenAdd{ID: fmt.Sprintf("token%d", n), Public: testPublic('1'), Expires: expires,
			Audit: Audit{At: at}})[0]
	}
	for n := range MaxTokens {
		if r := add(n, 1, 100+int64(n)); r.Code != OK {
			t.Fatalf("token %d: %+v", n, r)
		}
	}
	if r := add(500, 2, 1000); r.Code != LimitReached {
		t.Errorf("one more than there may be: %+v", r)
	}
	if r := add(500, 101, 1000); r.Code != OK { // token0 has expired
		t.Errorf("in the place of an expired one: %+v", r)
	}
	if _, ok := s.View().JoinToken("token0"); ok || len(s.View().JoinTokens()) != MaxTokens {
		t.Error("the expired one is kept")
	}
	if r := add(501, 1001+keepSpentTokens, 1002+keepSpentTokens); r.Code != OK || len(s.View().JoinTokens()) != 1 {
		t.Errorf("after a week: %+v, %d tokens", r, len(s.View().JoinTokens()))
	}
	check(t, s)
}

func TestJoinSecrets(t *testing.T) {
	s := born(t)
	m2 := MemberAdd{ID: "m2", Addr: "h:2", Fingerprint: testFP('b'), Weight: 1}
	for _, step := range []struct {
		name string
		cmd  Command
		code Code
	}{
		{"the configured one", JoinAdmit{Member: m2}, OK},
		{"too short", JoinSecretSet{Key: SecretText("short")}, Invalid},
		{"first", JoinSecretSet{Key: testJoinSecret('x'), Keep: true}, OK},
		{"somebody else was first", JoinSecretSet{Key: testJoinSecret('y')}, Conflict},
		{"the same", JoinSecretSet{Expect: 1, Key: testJoinSecret('x')}, Invalid},
		{"overlap: configured", JoinAdmit{Member: m2, Secret: 0}, OK},
		{"overlap: first", JoinAdmit{Member: m2, Secret: 1}, OK},
		{"without a word about the secret", m2, Conflict},
		{"drop of another", JoinSecretDrop{N: 2}, Conflict},
		{"drop", JoinSecretDrop{N: 1}, OK},
		{"drop again", JoinSecretDrop{N: 1}, OK},
		{"the configured one is over", JoinAdmit{Member: m2, Secret: 0}, Conflict},
		{"second, at once", JoinSecretSet{Expect: 1, Key: testJoinSecret('y')}, OK},
		{"the first is over", JoinAdmit{Member: m2, Secret: 1}, Conflict},
		{"the second holds", JoinAdmit{Member: m2, Secret: 2}, OK},
	} {
		if r := s.ApplyCommands(step.cmd)[0]; r.Code != step.code {
			t.Errorf("%s: %+v", step.name, r)
		}
		check(t, s)
	}
}

func TestMemberCert(t *testing.T) {
	s := born(t)
	s.ApplyCommands(MemberAdd{ID: "m2", Addr: "h:2", Fingerprint: testFP('b'), Weight: 1})
	cert := MemberCert{ID: "m2", Expect: testFP('b'), Fingerprint: testFP('c')}
	for _, step := range []struct {
		name string
		cmd  Command
		code Code
	}{
		{"nobody", MemberCert{ID: "m9", Expect: testFP('b'), Fingerprint: testFP('c')}, UnknownMember},
		{"somebody else's", MemberCert{ID: "m2", Expect: testFP('b'), Fingerprint: testFP('a')}, Conflict},
		{"from another", MemberCert{ID: "m2", Expect: testFP('e'), Fingerprint: testFP('c')}, Conflict},
		{"no certificate", MemberCert{ID: "m2", Expect: testFP('b'), Fingerprint: "x"}, Invalid},
		{"another", cert, OK},
		{"again", cert, OK},
	} {
		if r := s.ApplyCommands(step.cmd)[0]; r.Code != step.code {
			t.Errorf("%s: %+v", step.name, r)
		}
		check(t, s)
	}
	if m, _ := s.View().Member("m2"); m.Fingerprint != testFP('c') {
		t.Errorf("%+v", m)
	}
}
