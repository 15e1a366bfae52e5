package saltwire_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// traffic is a file of testdata/golden: what stock daemons of one version said to each other, written by
// integration/golden/record.py. The keys in it are test keys.
type traffic struct {
	Version string
	Keys    map[string]struct{ Private, Public string }
	Auth    []struct {
		Name           string
		Request, Reply []byte
		EncAlgo        string `json:"enc_algo"`
		SigAlgo        string `json:"sig_algo"`
	}
	Requests []struct {
		Name           string
		Request, Reply []byte
		Key            string
	}
	Publications []struct {
		Key  string
		Body []byte
	}
	Bus      struct{ Stream, Push []byte }
	Sessions map[string]string // content of cachedir/sessions/<id>
}

func readGolden(t testing.TB) map[string]traffic {
	t.Helper()
	files, err := filepath.Glob("testdata/golden/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden vectors: %v", err)
	}
	all := map[string]traffic{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var v traffic
		require.NoError(t, json.Unmarshal(raw, &v))
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = v
	}
	return all
}

func eachGolden(t *testing.T, f func(t *testing.T, v traffic)) {
	t.Helper()
	for name, v := range readGolden(t) {
		t.Run(name, func(t *testing.T) { f(t, v) })
	}
}

func (v traffic) private(t testing.TB, name string) *saltcrypt.MasterKey {
	t.Helper()
	m, err := saltcrypt.ParseMasterKey([]byte(v.Keys[name].Private))
	require.NoError(t, err)
	return m
}

func crypticle(t testing.TB, text string) *saltcrypt.Crypticle {
	t.Helper()
	k, err := saltcrypt.ParseKey(text)
	require.NoError(t, err)
	return saltcrypt.NewCrypticle(k)
}

// TestGoldenAuth reads every recorded sign-in, opens what the reply holds for the minion and writes the reply anew.
func TestGoldenAuth(t *testing.T) {
	want := map[string]saltwire.AuthOutcome{
		"accept-sha1": saltwire.AuthAccepted, "accept-sha224": saltwire.AuthAccepted,
		"accept-no-token":  saltwire.AuthAccepted,
		"accept-pub-sig":   saltwire.AuthAccepted,
		"accept-version-2": saltwire.AuthAccepted, "minion": saltwire.AuthAccepted, "pending": saltwire.AuthPending,
		"rejected": saltwire.AuthRejected, "full": saltwire.AuthFull, "version-2-refused": saltwire.AuthError,
	}
	eachGolden(t, func(t *testing.T, v traffic) {
		for _, row := range v.Auth {
			env, err := saltwire.ParseEnvelope(row.Request)
			if err != nil || env.Enc != saltwire.EncClear {
				t.Fatalf("%s: %+v, %v", row.Name, env, err)
			}
			req, err := saltwire.ParseAuth(env.Load)
			if err != nil || req.EncAlgo != row.EncAlgo || req.SigAlgo != row.SigAlgo {
				t.Fatalf("%s: %+v, %v", row.Name, req, err)
			}
			env.Load = saltwire.AppendAuth(nil, req)
			if again := saltwire.AppendEnvelope(nil, env); !bytes.Equal(again, row.Request) {
				t.Errorf("%s: written anew the request is\n%x, was\n%x", row.Name, again, row.Request)
			}
			reply, err := saltwire.ParseAuthReply(row.Reply)
			if !env.HasVersion || env.Version < 2 { // answered unsigned and in another form, which nobody needs
				if err == nil {
					t.Errorf("%s: %+v", row.Name, reply)
				}
				continue
			}
			if err != nil || reply.Outcome != want[row.Name] {
				t.Fatalf("%s: %+v, %v", row.Name, reply, err)
			}
			checkAuthReply(t, v, row.Name, req, reply, row.Reply)
		}
	})
}

func checkAuthReply(t *testing.T, v traffic, name string, req saltwire.AuthRequest, reply saltwire.AuthReply,
	body []byte) {
	t.Helper()
	master, minion := v.private(t, "master"), v.private(t, "minion")
	if reply.Load != nil {
		if err := master.Public().Verify(req.SigAlgo, reply.Load, reply.Sig); err != nil || reply.Nonce != req.Nonce {
			t.Errorf("%s: signature or nonce: %v", name, err)
		}
	}
	if reply.Outcome != saltwire.AuthAccepted {
		checkRefusal(t, name, reply, body)
		return
	}
	aes, err := minion.DecryptOAEP(req.EncAlgo, reply.AES)
	require.NoError(t, err)
	for _, ct := range [][]byte{reply.AES, reply.Session} {
		text, err := minion.DecryptOAEP(req.EncAlgo, ct)
		require.NoError(t, err, name)
		if _, err := saltcrypt.ParseKey(string(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	sum := sha256.Sum256(aes)
	digest := hex.EncodeToString(sum[:])
	if got, err := master.Public().VerifyX931(reply.SigX931); err != nil || string(got) != digest {
		t.Errorf("%s: sig = %q, %v", name, got, err)
	}
	if sig, err := master.SignX931([]byte(digest)); err != nil || !bytes.Equal(sig, reply.SigX931) {
		t.Errorf("%s: our sig differs: %v", name, err)
	}
	checkToken(t, name, master, minion, req, reply)
	if reply.HasPubSig {
		if err := v.private(t, "master_sign").Public().VerifyPubSig(req.SigAlgo, reply.PubKey, reply.PubSig); err != nil {
			t.Errorf("%s: pub_sig: %v", name, err)
		}
	}
	if reply.PubKey != master.PublicText() || reply.PublishPort == 0 {
		t.Errorf("%s: pub_key or publish_port %d", name, reply.PublishPort)
	}
	inner := saltwire.AppendAuthAccept(nil, saltwire.AuthAccept{
		PubKey: reply.PubKey, PublishPort: reply.PublishPort, Token: reply.Token, AES: reply.AES, Session: reply.Session,
		Sig: reply.SigX931, Nonce: reply.Nonce, PubSig: reply.PubSig, HasPubSig: reply.HasPubSig,
	})
	sig, err := master.Sign(req.SigAlgo, inner)
	if again := saltwire.AppendSigned(nil, inner, sig); err != nil || !bytes.Equal(again, body) {
		t.Errorf("%s: written anew the reply is\n%x, was\n%x", name, again, body)
	}
}

func checkToken(t *testing.T, name string, master, minion *saltcrypt.MasterKey, req saltwire.AuthRequest,
	reply saltwire.AuthReply) {
	t.Helper()
	if (req.Token == nil) != (reply.Token == nil) {
		t.Fatalf("%s: token sent %v, echoed %v", name, req.Token != nil, reply.Token != nil)
	}
	if req.Token == nil {
		return
	}
	sent, err1 := master.DecryptOAEP(req.EncAlgo, req.Token)
	echoed, err2 := minion.DecryptOAEP(req.EncAlgo, reply.Token)
	if err1 != nil || err2 != nil || !bytes.Equal(sent, echoed) {
		t.Errorf("%s: token %q, echo %q, %v, %v", name, sent, echoed, err1, err2)
	}
}

func checkRefusal(t *testing.T, name string, reply saltwire.AuthReply, body []byte) {
	t.Helper()
	var ret any
	switch reply.Outcome {
	case saltwire.AuthPending:
		ret = true
	case saltwire.AuthRejected:
		ret = false
	case saltwire.AuthFull:
		ret = "full"
	default:
		if !bytes.Equal(body, saltwire.BadLoad()) || reply.Text != "bad load" {
			t.Errorf("%s: %x", name, body)
		}
		return
	}
	inner := saltwire.AppendAuthRet(nil, ret, reply.Nonce)
	if !bytes.Equal(inner, reply.Load) || !bytes.Equal(saltwire.AppendSigned(nil, inner, reply.Sig), body) {
		t.Errorf("%s: written anew: %x, was %x", name, inner, reply.Load)
	}
}

// TestGoldenRequests opens every recorded request and its answer.
func TestGoldenRequests(t *testing.T) {
	eachGolden(t, func(t *testing.T, v traffic) {
		crypticle(t, v.Sessions["golden-minion"]) // a session file is the key's text and nothing else
		seen := map[string]int{}
		for _, row := range v.Requests {
			env, err := saltwire.ParseEnvelope(row.Request)
			require.NoError(t, err, row.Name)
			if again := saltwire.AppendEnvelope(nil, env); !bytes.Equal(again, row.Request) {
				t.Errorf("%s: written anew the envelope differs", row.Name)
			}
			if row.Key == "" {
				if row.Name == "wrong-session-key" && !bytes.Equal(row.Reply, saltwire.BadLoad()) {
					t.Errorf("%s: %x", row.Name, row.Reply)
				}
				continue
			}
			if env.Version == 3 && row.Key != v.Sessions[env.ID] {
				t.Errorf("%s: not sealed with the session file's key", row.Name)
			}
			peek := checkRequest(t, v, row.Name, env, row.Key)
			seen[peek.Cmd]++
			checkAnswer(t, v, peek, row.Reply, row.Key, env.SigAlgo)
		}
		for _, cmd := range []string{"_pillar", "_return", "_minion_event", "_mine", "_mine_get", "_file_hash", "_serve_file",
			"verify_minion"} {
			if seen[cmd] == 0 {
				t.Errorf("no %s among the vectors: %v", cmd, seen)
			}
		}
	})
}

func checkRequest(t *testing.T, v traffic, name string, env saltwire.Envelope, key string) saltwire.Peek {
	t.Helper()
	plain, err := crypticle(t, key).Open(nil, env.Load)
	require.NoError(t, err, name)
	peek, err := saltwire.PeekLoad(plain)
	require.NoError(t, err, name)
	if len(peek.Nonce) != 32 || !peek.HasTS || env.HasVersion && env.Version == 3 && peek.ID != env.ID {
		t.Errorf("%s: %+v", name, peek)
	}
	if tok, err := v.private(t, "minion").Public().VerifyX931(peek.Tok); err != nil || string(tok) != "salt" {
		t.Errorf("%s: tok = %q, %v", name, tok, err)
	}
	if peek.Cmd == "_return" && (peek.JID == "" || peek.Fun == "") {
		t.Errorf("%s: %+v", name, peek)
	}
	// No version of Salt echoes master_id in the return of a job with several functions.
	several := bytes.Contains(plain, []byte("\xa3fun\x92"))
	if name == "minion" && peek.Cmd == "_return" && (!peek.HasSig || !several && peek.MasterID != "golden-node") {
		t.Errorf("%s: %s of job %s: sig %v, master_id %q", name, peek.Fun, peek.JID, peek.HasSig, peek.MasterID)
	}
	return peek
}

// checkAnswer opens a reply: sealed under the request's key with its nonce before the value, or a private one.
func checkAnswer(t *testing.T, v traffic, peek saltwire.Peek, reply []byte, key, sigAlgo string) {
	t.Helper()
	if peek.Cmd == "_pillar" {
		checkPrivate(t, v, peek, reply, sigAlgo)
		return
	}
	text, ok := saltwire.Bytes(reply)
	if !ok {
		t.Fatalf("%s: reply is %x", peek.Cmd, reply)
	}
	plain, err := crypticle(t, key).Open(nil, text)
	if err != nil || !bytes.HasPrefix(plain, []byte(peek.Nonce)) {
		t.Errorf("%s: reply opens to %x, %v", peek.Cmd, plain, err)
	}
}

func checkPrivate(t *testing.T, v traffic, peek saltwire.Peek, reply []byte, sigAlgo string) {
	t.Helper()
	private, err := saltwire.ParsePrivateReply(reply)
	if err != nil {
		t.Fatalf("private reply: %v: %x", err, reply)
	}
	encAlgo := map[string]string{saltcrypt.PKCS1v15SHA1: saltcrypt.OAEPSHA1,
		saltcrypt.PKCS1v15SHA224: saltcrypt.OAEPSHA224}[sigAlgo]
	key, err := v.private(t, "minion").DecryptOAEP(encAlgo, private.Key)
	require.NoError(t, err)
	plain, err := crypticle(t, string(key)).Open(nil, private.Pillar)
	require.NoError(t, err)
	signed, err := saltwire.ParseSignedReply(plain)
	require.NoError(t, err)
	check.NoError(t, v.private(t, "master").Public().Verify(sigAlgo, signed.Data, signed.Sig))
	data, err := saltwire.ParsePrivateData(signed.Data)
	if err != nil || !bytes.Equal(data.Key, private.Key) || data.Nonce != peek.Nonce || len(data.Pillar) == 0 {
		t.Errorf("private data: %+v, %v", data, err)
	}
}

func TestGoldenPublications(t *testing.T) {
	eachGolden(t, func(t *testing.T, v traffic) {
		master, lists, signed := v.private(t, "master").Public(), 0, map[string]bool{}
		for _, row := range v.Publications {
			pub, err := saltwire.ParsePub(row.Body)
			require.NoError(t, err)
			check.NoError(t, master.Verify(pub.SigAlgo, pub.Load, pub.Sig))
			signed[pub.SigAlgo] = true
			if again := saltwire.AppendPub(nil, pub.Load, pub.Sig, pub.SigAlgo); !bytes.Equal(again, row.Body) {
				t.Error("written anew the publication differs")
			}
			plain, err := crypticle(t, row.Key).Open(nil, pub.Load)
			require.NoError(t, err)
			peek, err := saltwire.PeekPub(plain)
			if err != nil || len(peek.JID) != 20 || !peek.HasSerial || peek.MasterID != "golden-node" || peek.Fun == "" {
				t.Errorf("%+v, %v", peek, err)
			}
			if peek.TgtType == "list" {
				lists++
				if len(peek.Targets) == 0 {
					t.Errorf("list without targets: %+v", peek)
				}
			}
			changed, err := saltwire.SetSerial(nil, plain, 1<<40)
			if got, err2 := saltwire.PeekPub(changed); err != nil || err2 != nil || got.Serial != 1<<40 || got.JID != peek.JID {
				t.Errorf("SetSerial: %+v, %v, %v", got, err, err2)
			}
			if back, err := saltwire.SetSerial(nil, changed, peek.Serial); err != nil || !bytes.Equal(back, plain) {
				t.Errorf("SetSerial back: %v", err)
			}
		}
		if lists == 0 || len(signed) != 2 {
			t.Errorf("%d list targets, signed with %v: not all kinds are recorded", lists, signed)
		}
	})
}

// TestGoldenBus finds events in the recorded streams; their framing, which differs by version, is
// sidecar/localmaster's.
func TestGoldenBus(t *testing.T) {
	eachGolden(t, func(t *testing.T, v traffic) {
		i := bytes.Index(v.Bus.Push, []byte("golden/push"))
		if i < 0 || !bytes.Contains(v.Bus.Stream, []byte("golden/event")) {
			t.Fatal("events are missing from the streams")
		}
		tag, data, ok := saltwire.SplitEvent(v.Bus.Push[i:])
		if !ok || tag != "golden/push" {
			t.Fatalf("tag %q", tag)
		}
		var stamp []byte
		if err := saltwire.WalkMap(data, func(key, value []byte) error {
			if string(key) == "_stamp" {
				stamp, _ = saltwire.Bytes(value)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		ours, err := saltwire.AppendAny(nil, map[string]any{"bytes": []byte{0, 0xff}, "text": "grüße", "n": 1,
			"_stamp": string(stamp)}, saltwire.Disk)
		if err != nil || len(ours) != len(data) {
			t.Errorf("our event has %d bytes, Salt's %d: %v", len(ours), len(data), err)
		}
		if entry := saltwire.AppendEvent(nil, tag, data); !bytes.Equal(entry, v.Bus.Push[i:]) {
			t.Error("AppendEvent differs from what Salt wrote")
		}
	})
}
