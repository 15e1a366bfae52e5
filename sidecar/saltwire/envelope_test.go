package saltwire

import (
	"bytes"
	"strings"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// rawMap writes a map from keys and already encoded values, duplicates and all.
func rawMap(pairs ...string) []byte {
	b := AppendMapHeader(nil, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		b = append(AppendRaw(b, pairs[i]), pairs[i+1]...)
	}
	return b
}

func raw(s string) string { return string(AppendRaw(nil, s)) }

func TestParseEnvelope(t *testing.T) {
	e, err := ParseEnvelope(rawMap("version", "\x03", "id", raw("m1"), "load", raw("sealed"), "enc", raw("aes"),
		"enc_algo", raw(encSHA224), "sig_algo", raw(sigSHA224), "later", "\x91\xc0"))
	require.NoError(t, err)
	want := Envelope{Enc: EncAES, Version: 3, HasVersion: true, ID: "m1", EncAlgo: encSHA224, SigAlgo: sigSHA224}
	if string(e.Load) != "sealed" {
		t.Errorf("load %q", e.Load)
	}
	if e.Load = nil; e.Enc != want.Enc || e.ID != want.ID || e.Version != 3 || !e.HasVersion ||
		e.EncAlgo != want.EncAlgo || e.SigAlgo != want.SigAlgo {
		t.Errorf("%+v", e)
	}
	bin := append([]byte{0x82, 0xd9, 3}, "enc\xc4\x05clear\xa4load\x80"...)
	if e, err := ParseEnvelope(bin); err != nil || e.Enc != EncClear || string(e.Load) != "\x80" || e.HasVersion {
		t.Errorf("str8 and bin: %+v, %v", e, err)
	}
}

func TestParseEnvelopeRefuses(t *testing.T) {
	aes, load := raw("aes"), raw("sealed")
	for _, c := range []struct {
		name, want string
		body       []byte
	}{
		{"empty", ReasonTruncated, nil},
		{"string", ReasonNotMap, AppendRaw(nil, "hello")},
		{"list", ReasonNotMap, []byte{0x90}},
		{"trailing byte", ReasonTrailing, append(rawMap("enc", raw("clear"), "load", "\x80"), 0)},
		{"no enc", ReasonMissing, rawMap("load", load)},
		{"no load", ReasonMissing, rawMap("enc", aes)},
		{"enc pub", ReasonEnc, rawMap("enc", raw("pub"), "load", load)},
		{"enc AES", ReasonEnc, rawMap("enc", raw("AES"), "load", load)},
		{"enc empty", ReasonEnc, rawMap("enc", raw(""), "load", load)},
		{"enc with NUL", ReasonEnc, rawMap("enc", raw("aes\x00"), "load", load)},
		{"enc int", ReasonEnc, rawMap("enc", "\x01", "load", load)},
		{"enc list", ReasonEnc, rawMap("enc", "\x91"+aes, "load", load)},
		{"enc twice", ReasonDuplicate, rawMap("enc", aes, "enc", aes, "load", load)},
		{"unknown key twice", ReasonDuplicate, rawMap("enc", aes, "x", "\xc0", "x", "\xc0", "load", load)},
		{"int key", ReasonKeyType, []byte{0x81, 0x01, 0xc0}},
		{"clear with bytes", ReasonType, rawMap("enc", raw("clear"), "load", load)},
		{"clear with list", ReasonType, rawMap("enc", raw("clear"), "load", "\x90")},
		{"aes with map", ReasonType, rawMap("enc", aes, "load", "\x80", "version", "\x03", "id", raw("m"))},
		{"aes with nil", ReasonType, rawMap("enc", aes, "load", "\xc0", "version", "\x03", "id", raw("m"))},
		{"aes 3 without id", ReasonMissing, rawMap("enc", aes, "load", load, "version", "\x03")},
		{"id int", ReasonType, rawMap("enc", aes, "load", load, "id", "\x01")},
		{"id long", ReasonSize, rawMap("enc", aes, "load", load, "id", raw(strings.Repeat("i", 256)))},
		{"version text", ReasonVersion, rawMap("enc", aes, "load", load, "version", raw("3"))},
		{"version float", ReasonVersion, rawMap("enc", aes, "load", load, "version", "\xca\x40\x40\x00\x00")},
		{"version true", ReasonVersion, rawMap("enc", aes, "load", load, "version", "\xc3")},
		{"version -1", ReasonVersion, rawMap("enc", aes, "load", load, "version", "\xff")},
		{"version 2^64-1", ReasonVersion, rawMap("enc", aes, "load", load, "version",
			"\xcf\xff\xff\xff\xff\xff\xff\xff\xff")},
		{"enc_algo", ReasonEncAlgo, rawMap("enc", aes, "load", load, "enc_algo", raw("OAEP-MD5"))},
		{"sig_algo", ReasonSigAlgo, rawMap("enc", aes, "load", load, "sig_algo", raw("none"))},
		{"sig_algo nil", ReasonType, rawMap("enc", aes, "load", load, "sig_algo", "\xc0")},
		{"extension", ReasonFormat, rawMap("enc", raw("clear"), "load", "\x81\xa1x\xd4\x4e\x00")},
		{"map key inside", ReasonKeyType, rawMap("enc", raw("clear"), "load", "\x81\x80\xc0")},
		{"keys without end", ReasonTooManyKey, append([]byte{0xde, 0x01, 0x00}, make([]byte, 1024)...)},
	} {
		_, err := ParseEnvelope(c.body)
		check.Equal(t, reason(t, err), c.want, c.name)
	}
}

func TestValidID(t *testing.T) {
	for _, id := range []string{"m", "web-1.example.org", "with space", "grün", "a..b", strings.Repeat("i", 255)} {
		check.NoError(t, ValidID(id), id)
	}
	for _, id := range []string{"", ".", "..", ".scd", "a/b", `a\b`, "a\x00", "a\n", "a\x7f", "a\u0085", "a\xff",
		strings.Repeat("i", 256)} {
		check.Equal(t, reason(t, ValidID(id)), ReasonInvalidID, id)
	}
}

func authPairs(change ...string) []byte {
	pairs := []string{"cmd", raw("_auth"), "id", raw("m1"), "nonce", raw("n1"), "pub", raw("-----BEGIN")}
	for i := 0; i < len(change); i += 2 {
		found := false
		for j := 0; j < len(pairs); j += 2 {
			if pairs[j] == change[i] {
				pairs[j+1], found = change[i+1], true
			}
		}
		if !found {
			pairs = append(pairs, change[i:i+2]...)
		}
	}
	return rawMap(pairs...)
}

func TestParseAuth(t *testing.T) {
	a, err := ParseAuth(authPairs("autosign_grains", "\x82\xa1a\xc0\xa1b\x91\xa1x", "token", raw("\xff"), "extra", "\xc0"))
	if err != nil || a.EncAlgo != encSHA1 || a.SigAlgo != sigSHA1 || string(a.Token) != "\xff" ||
		len(a.AutosignGrains) != 9 {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := ParseAuth(authPairs("autosign_grains", "\xc0")); err != nil || a.AutosignGrains != nil {
		t.Errorf("grains None: %+v, %v", a, err)
	}
	again, err := ParseAuth(AppendAuth(nil, a))
	if err != nil || again.ID != a.ID || !bytes.Equal(again.AutosignGrains, a.AutosignGrains) ||
		!bytes.Equal(again.Token, a.Token) {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestParseAuthRefuses(t *testing.T) {
	for _, c := range []struct{ name, want, field, value string }{
		{"other command", ReasonCommand, "cmd", raw("ping")},
		{"command int", ReasonCommand, "cmd", "\x01"},
		{"id int", ReasonType, "id", "\x01"},
		{"id nil", ReasonType, "id", "\xc0"},
		{"id list", ReasonType, "id", "\x91" + raw("m")},
		{"id path", ReasonInvalidID, "id", raw("../m")},
		{"id hidden", ReasonInvalidID, "id", raw(".scd")},
		{"nonce nil", ReasonType, "nonce", "\xc0"},
		{"nonce empty", ReasonMissing, "nonce", raw("")},
		{"nonce long", ReasonSize, "nonce", raw(strings.Repeat("n", 65))},
		{"nonce binary", ReasonNotText, "nonce", raw("\x00")},
		{"pub int", ReasonType, "pub", "\x01"},
		{"pub map", ReasonType, "pub", "\x80"},
		{"pub binary", ReasonNotText, "pub", raw("\x80")},
		{"pub long", ReasonSize, "pub", raw(strings.Repeat("p", 4097))},
		{"enc_algo", ReasonEncAlgo, "enc_algo", raw("OAEP-MD5")},
		{"enc_algo list", ReasonType, "enc_algo", "\x90"},
		{"sig_algo", ReasonSigAlgo, "sig_algo", raw("")},
		{"token nil", ReasonType, "token", "\xc0"},
		{"token long", ReasonSize, "token", raw(strings.Repeat("t", 1025))},
		{"grains list", ReasonType, "autosign_grains", "\x90"},
		{"grains with int key", ReasonKeyType, "autosign_grains", "\x81\x01\xc0"},
	} {
		_, err := ParseAuth(authPairs(c.field, c.value))
		check.Equal(t, reason(t, err), c.want, c.name)
	}
	for _, missing := range []string{"cmd", "id", "nonce", "pub"} {
		body := bytes.Replace(authPairs(), AppendRaw(nil, missing), AppendRaw(nil, strings.Repeat("x", len(missing))), 1)
		if _, err := ParseAuth(body); reason(t, err) != ReasonMissing {
			t.Errorf("without %s: %v", missing, err)
		}
	}
	if _, err := ParseAuth(rawMap("id", raw("a"), "id", raw("b"))); reason(t, err) != ReasonDuplicate {
		t.Errorf("two ids: %v", err)
	}
}

func TestParseAuthReplyForms(t *testing.T) {
	inner := func(ret any) []byte { return AppendSigned(nil, AppendAuthRet(nil, ret, "n"), []byte("sig")) }
	for _, c := range []struct {
		name, text string
		body       []byte
		want       AuthOutcome
	}{
		{"pending", "", inner(true), AuthPending},
		{"rejected", "", inner(false), AuthRejected},
		{"full", "", inner("full"), AuthFull},
		{"other text", "what?", inner("what?"), AuthError},
		{"unsigned rejected", "", AppendClearRet(nil, false), AuthRejected},
		{"unsigned algorithm", ReasonEncAlgo, AppendClearRet(nil, ReasonEncAlgo), AuthError},
		{"bad load", "bad load", BadLoad(), AuthError},
		{"error map", "Routing error", rawMap("error", raw("Routing error")), AuthError},
		{"message map", "bad load", rawMap("msg", raw("bad load")), AuthError},
		{"number", "5", AppendClearRet(nil, 5), AuthError},
	} {
		r, err := ParseAuthReply(c.body)
		if err != nil || r.Outcome != c.want || r.Text != c.text {
			t.Errorf("%s: %v %q, %v", c.name, r.Outcome, r.Text, err)
		}
		if signed := strings.HasPrefix(c.name, "unsigned"); signed && (r.Load != nil || r.Sig != nil) {
			t.Errorf("%s: claims a signature", c.name)
		}
	}
	half := AppendAuthAccept(nil, AuthAccept{PubKey: "p", PublishPort: 4505, Nonce: "n"})
	for name, body := range map[string][]byte{
		"accept without aes": AppendSigned(nil, half, nil), "int": {5}, "empty map": {0x80},
		"load without ret": AppendSigned(nil, []byte{0x80}, nil),
		"load not a map":   AppendSigned(nil, []byte{0x01}, nil), "two loads": rawMap("load", raw("\x80"), "load", raw("\x80")),
	} {
		if r, err := ParseAuthReply(body); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
