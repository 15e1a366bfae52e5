package jointoken

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

const aCluster = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func token(t testing.TB) Token {
	t.Helper()
	tok, err := New().For(aCluster)
	require.NoError(t, err)
	return tok
}

func TestRoundTrip(t *testing.T) {
	tok := token(t)
	again, err := Parse(" " + tok.Text() + "\n")
	require.NoError(t, err)
	if again.ID() != tok.ID() || again.Cluster() != aCluster || !bytes.Equal(again.Public(), tok.Public()) ||
		again.Text() != tok.Text() {
		t.Error("another token came back")
	}
	message := []byte("a channel")
	if !Verify(tok.Public(), message, again.Sign(message)) {
		t.Error("its signature is not taken")
	}
	other := token(t)
	if other.ID() == tok.ID() || Verify(other.Public(), message, tok.Sign(message)) ||
		Verify(tok.Public(), []byte("another"), tok.Sign(message)) {
		t.Error("two tokens are alike, or a signature fits everything")
	}
	if Verify(nil, message, nil) || Verify(tok.Public(), message, nil) {
		t.Error("nothing is taken for a signature")
	}
	if !(Token{}).IsZero() || tok.IsZero() {
		t.Error("IsZero")
	}
}

// fixturePublic is the public half of the token below, computed with other software.
const fixturePublic = "702dd8f2f9fbfdfa8075f4f5877aa58d1f27488d38fc5d3b62e7de4c8e4db5fc"

// What a token means must not change: operators hold them.
func TestFixture(t *testing.T) {
	const text = "sct1.k7m2q9x4ab.AAECAwQFBgcICQoLDA0ODw.n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg"
	tok, err := Parse(text)
	require.NoError(t, err)
	if got := fmt.Sprintf("%x", tok.Public()); tok.Cluster() != aCluster || got != fixturePublic {
		t.Errorf("cluster %s, public key %s", tok.Cluster(), got)
	}
}

func TestParseRefuses(t *testing.T) {
	good := token(t).Text()
	f := strings.Split(good, ".")
	for name, text := range map[string]string{
		"empty": "", "a secret": "q3Vt0vJcN8mYw2fXz7LrKd5hBs9aGe1T", "cut": good[:len(good)-1], "longer": good + "A",
		"a field less": strings.Join(f[:3], "."), "a field more": good + ".x", "version": "sct2" + good[4:],
		"id": "sct1.K7M2Q9X4AB." + f[2] + "." + f[3], "seed": "sct1." + f[1] + ".!." + f[3],
		"huge":          "sct1." + strings.Repeat("a", 1000),
		"trailing bits": "sct1." + f[1] + "." + f[2][:21] + "_." + f[3],
	} {
		tok, err := Parse(text)
		if !errors.Is(err, ErrMalformed) || !tok.IsZero() {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && len(text) > 8 && strings.Contains(err.Error(), f[2]) {
			t.Errorf("%s: the error quotes the token", name)
		}
	}
	if _, err := New().For("x"); err == nil {
		t.Error("no fingerprint was taken for one")
	}
}

func TestTokensDoNotPrint(t *testing.T) {
	tok := token(t)
	f := strings.Split(tok.Text(), ".")
	var out bytes.Buffer
	hidden := struct{ inner Token }{tok}
	for _, v := range []any{tok, &tok, hidden, &hidden, []Token{tok}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			fmt.Fprintf(&out, verb, v)
		}
		slog.New(slog.NewTextHandler(&out, nil)).Info("m", "v", v)
		b, err := json.Marshal(v)
		require.NoError(t, err)
		out.Write(b)
	}
	for _, leak := range []string{f[2], *tok.seed, fmt.Sprintf("%x", *tok.seed), fmt.Sprintf("%q", *tok.seed)[1:12],
		fmt.Sprintf("%x", []byte(tok.privateKey())[:16])} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("a token prints itself: %s", out.String())
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(token(f).Text())
	f.Add("sct1...")
	f.Fuzz(func(t *testing.T, text string) {
		tok, err := Parse(text)
		if err == nil && tok.Text() != strings.TrimSpace(text) {
			t.Fatalf("%q was accepted, but is %q again", text, tok.Text())
		}
	})
}
