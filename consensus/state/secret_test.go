package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretsDoNotPrint(t *testing.T) {
	const plain = "correct-horse-battery-staple-000"
	sec := SecretText(plain)
	s := born(t)
	rot := EpochRotate{Expect: 1, Key: sec, Reason: "x"}
	s.ApplyCommands(JoinSecretSet{Key: sec, Keep: true}, JoinSecretSet{Expect: 1, Key: testJoinSecret('j'), Keep: true})
	hidden := struct{ inner Secret }{sec}
	values := map[string]any{
		"secret": sec, "pointer": &sec, "command": rot, "commands": []Command{rot}, "hidden": hidden,
		"hidden pointer": &hidden,
		"gossip":         GossipKey{Key: sec}, "secrets": s.View().JoinSecrets(), "set": JoinSecretSet{Key: sec},
		"request": Request{Commands: []Command{rot, testInit()}},
		"init":    Init{SessionSeed: sec, EpochKey: sec, GossipKey: sec}, "state": s, "view": s.View(), "data": s.cur.Load(),
	}
	leaks := []string{plain, testEpochKey('A').Text(), strings.Repeat("s", 32), strings.Repeat("g", 32),
		testJoinSecret('j').Text()}
	var text, js bytes.Buffer
	for name, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			refuseLeak(t, name+" "+verb, fmt.Sprintf(verb, v), leaks)
		}
		text.Reset()
		js.Reset()
		slog.New(slog.NewTextHandler(&text, nil)).Info("m", "v", v)
		slog.New(slog.NewJSONHandler(&js, nil)).Info("m", "v", v)
		refuseLeak(t, name+" slog text", text.String(), leaks)
		refuseLeak(t, name+" slog json", js.String(), leaks)
		if b, err := json.Marshal(v); err == nil {
			refuseLeak(t, name+" json", string(b), leaks)
		}
	}
	if !sec.Equal(SecretText(plain)) || sec.Equal(SecretText("other")) || sec.Text() != plain ||
		string(sec.Bytes()) != plain {
		t.Error("the content is not what was put in")
	}
	if !NewSecret(nil).IsZero() || (Secret{}).Len() != 0 {
		t.Error("the zero secret")
	}
}

func refuseLeak(t *testing.T, what, got string, leaks []string) {
	t.Helper()
	for _, l := range leaks {
		if strings.Contains(got, l) || strings.Contains(got, fmt.Sprintf("%x", l)) {
			t.Errorf("%s shows a secret", what)
		}
	}
}

func TestDecodingErrorsDoNotQuote(t *testing.T) {
	for _, in := range []string{
		`{"v":1,"t":"epoch.rotate","d":{"expect":1,"key":"TOPSECRET\x"}}`,
		`{"v":1,"t":"epoch.rotate","d":{"expect":"TOPSECRET","key":1}}`,
		`{"v":1,"t":"gossip.key","d":{"expect":1,"key":"TOPSECRET!"}}`,
		`{"v":1,"t":"gossip.key","d":{"TOPSECRET":1}}`,
	} {
		_, err := DecodeCommand([]byte(in))
		if err == nil || strings.Contains(err.Error(), "TOPSECRET") {
			t.Errorf("%s: %v", in, err)
		}
	}
}
