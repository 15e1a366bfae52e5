package saltwire

import (
	"bytes"
	"testing"

	"saltclusterd/integration/require"
)

func TestCutJID(t *testing.T) {
	const digits = "20261127101112000001"
	for jid, want := range map[string]string{
		digits + "_4711": digits, digits + "_1": digits, digits + "_a_b": digits,
		digits: "", digits + "_": "", digits + "4711": "", digits[1:] + "_4711": "", "deploy_of_the_day_in_may_1": "",
		"req": "", "": "",
	} {
		got, ok := CutJID(jid)
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", jid, got, ok)
		}
		if ok && !IsCutJID(got) {
			t.Errorf("%q may not be a cut id", got)
		}
	}
	for _, jid := range []string{digits + "_1", digits[1:], "2026112710111200000x", "", digits + "0"} {
		if IsCutJID(jid) {
			t.Errorf("%q may be a cut id", jid)
		}
	}
}

func TestReplaceValue(t *testing.T) {
	for plain, want := range map[string]string{
		"\x82\xa3jid\xa1x\xa2id\xa1m":    "\x82\xa3jid\xa3new\xa2id\xa1m",
		"\x82\xa2id\xa1m\xc4\x03jid\x07": "\x82\xa2id\xa1m\xc4\x03jid\xa3new",
		"\x82\xa3jid\xa1x\xa3jid\xa1y":   "\x82\xa3jid\xa3new\xa3jid\xa3new",
		"\x81\xa2id\x81\xa3jid\xa1x":     "\x81\xa2id\x81\xa3jid\xa1x", // not the map's own
		"\x80":                           "\x80",
	} {
		got, err := ReplaceValue([]byte(plain), "jid", AppendStr(nil, "new"))
		if err != nil || string(got) != want {
			t.Errorf("%q: %q, %v, want %q", plain, got, err, want)
		}
	}
	for _, bad := range []string{"", "\xc0", "\x91\x01", "\x81\xa3jid", "\x80\x80"} {
		if got, err := ReplaceValue([]byte(bad), "jid", nil); err == nil {
			t.Errorf("%q became %q", bad, got)
		}
	}
}

func FuzzReplaceValue(f *testing.F) {
	f.Add([]byte("\x82\xa3cmd\xa7_return\xa3jid\xa1x"))
	f.Fuzz(func(t *testing.T, plain []byte) {
		was, err := PeekLoad(plain)
		if err != nil {
			return
		}
		before := bytes.Clone(plain)
		got, err := ReplaceValue(plain, "jid", AppendStr(nil, "new"))
		require.NoError(t, err)
		is, err := PeekLoad(got)
		if err != nil || !bytes.Equal(before, plain) {
			t.Fatalf("%x becomes %x: %v", plain, got, err)
		}
		if is.ID != was.ID || is.Cmd != was.Cmd || was.JID != "" && is.JID != "new" {
			t.Errorf("%x becomes %x, read as %+v", plain, got, is)
		}
	})
}
