package saltwire_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// stock is integration/golden/verify.py run by a Salt virtualenv: Salt's own client classes, which judge what we write.
type stock struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

// eachStock runs f against every version found in the directory SALTCLUSTER_VENVS names.
func eachStock(t *testing.T, f func(t *testing.T, s *stock)) {
	t.Helper()
	venvs := os.Getenv("SALTCLUSTER_VENVS")
	if venvs == "" {
		t.Skip("SALTCLUSTER_VENVS is not set: no stock Salt to ask")
	}
	pythons, err := filepath.Glob(filepath.Join(venvs, "*", "bin", "python"))
	if err != nil || len(pythons) == 0 {
		t.Fatalf("no virtualenvs in SALTCLUSTER_VENVS: %v", err)
	}
	for _, python := range pythons {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(python))), func(t *testing.T) { f(t, startStock(t, python)) })
	}
}

func startStock(t *testing.T, python string) *stock {
	t.Helper()
	cmd := exec.Command(python, filepath.Join("..", "..", "integration", "golden", "verify.py"), t.TempDir())
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); t.Failed() {
			t.Logf("verify.py: %v\n%s", err, stderr.String())
		}
	})
	return &stock{t: t, in: in, out: bufio.NewReader(out)}
}

// try asks and returns the error text of Python, if any.
func (s *stock) try(ask map[string]any, answer any) string {
	s.t.Helper()
	line, err := json.Marshal(ask)
	require.NoError(s.t, err)
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		s.t.Fatal(err)
	}
	line, err = s.out.ReadBytes('\n')
	require.NoError(s.t, err)
	var got struct {
		OK    json.RawMessage
		Error string
	}
	require.NoError(s.t, json.Unmarshal(line, &got))
	if got.Error == "" && answer != nil {
		require.NoError(s.t, json.Unmarshal(got.OK, answer), got.OK)
	}
	return got.Error
}

func (s *stock) ask(ask map[string]any, answer any) {
	s.t.Helper()
	if text := s.try(ask, answer); text != "" {
		s.t.Fatalf("%v: %s", ask["op"], text)
	}
}

// cluster is what a node holds that answers sign-ins.
type cluster struct {
	master, sign, minion *saltcrypt.MasterKey
	aes, session         saltcrypt.Key
}

func newCluster(t *testing.T) cluster {
	t.Helper()
	var c cluster
	for _, key := range []**saltcrypt.MasterKey{&c.master, &c.sign, &c.minion} {
		m, err := saltcrypt.GenerateMasterKey(2048)
		require.NoError(t, err)
		*key = m
	}
	aes, err := saltcrypt.NewKey()
	require.NoError(t, err)
	c.aes, c.session = aes, saltcrypt.DeriveSession([]byte("seed"), "m1", c.minion.PublicText())
	return c
}

// accept answers a sign-in as a node does.
func (c cluster) accept(t *testing.T, body []byte, pubSig bool) []byte {
	t.Helper()
	env, err := saltwire.ParseEnvelope(body)
	require.NoError(t, err)
	req, err := saltwire.ParseAuth(env.Load)
	require.NoError(t, err)
	pub, err := saltcrypt.ParsePublicKey(req.Pub)
	if err != nil || !pub.Equal(c.minion.Public()) {
		t.Fatalf("pub: %v", err)
	}
	must := func(b []byte, err error) []byte {
		t.Helper()
		require.NoError(t, err)
		return b
	}
	sum := sha256.Sum256([]byte(c.aes.Text()))
	a := saltwire.AuthAccept{
		PubKey: c.master.PublicText(), PublishPort: 4505, Nonce: req.Nonce,
		AES:     must(pub.EncryptOAEP(req.EncAlgo, []byte(c.aes.Text()))),
		Session: must(pub.EncryptOAEP(req.EncAlgo, []byte(c.session.Text()))),
		Sig:     must(c.master.SignX931([]byte(hex.EncodeToString(sum[:])))),
	}
	if req.Token != nil {
		a.Token = must(pub.EncryptOAEP(req.EncAlgo, must(c.master.DecryptOAEP(req.EncAlgo, req.Token))))
	}
	if pubSig {
		if a.PubSig, err = c.sign.SignPublic(req.SigAlgo, a.PubKey); err != nil {
			t.Fatal(err)
		}
		a.HasPubSig = true
	}
	inner := saltwire.AppendAuthAccept(nil, a)
	return saltwire.AppendSigned(nil, inner, must(c.master.Sign(req.SigAlgo, inner)))
}

type signedIn struct {
	Result, AES, Session string
	PublishPort          int `json:"publish_port"`
}

func (c cluster) newMinion(s *stock, pinned *saltcrypt.MasterKey, options map[string]any) {
	s.t.Helper()
	ask := map[string]any{"op": "new", "private": string(c.minion.PEM()), "public": c.minion.PublicText() + "\n",
		"options": options}
	if pinned != nil {
		ask["pinned"] = pinned.PublicText()
	}
	if options["verify_master_pubkey_sign"] == true {
		ask["sign_key"] = c.sign.PublicText()
	}
	s.ask(ask, nil)
}

// signIn lets the stock minion sign in at c and returns what came of it.
func (c cluster) signIn(s *stock, pubSig bool) (signedIn, string) {
	s.t.Helper()
	var body []byte
	s.ask(map[string]any{"op": "sign_in"}, &body)
	var got signedIn
	text := s.try(map[string]any{"op": "signed_in", "body": c.accept(s.t, body, pubSig)}, &got)
	return got, text
}

func TestStockMinionAcceptsOurSignIn(t *testing.T) {
	c := newCluster(t)
	sha224 := map[string]any{"encryption_algorithm": saltcrypt.OAEPSHA224, "signing_algorithm": saltcrypt.PKCS1v15SHA224}
	verify := map[string]any{"verify_master_pubkey_sign": true, "always_verify_signature": true}
	eachStock(t, func(t *testing.T, s *stock) {
		for _, test := range []struct {
			name    string
			pinned  *saltcrypt.MasterKey
			options map[string]any
			pubSig  bool
			refused string
		}{
			{"first contact", nil, nil, false, ""},
			{"pinned", c.master, nil, false, ""},
			{"pinned, SHA-224", c.master, sha224, false, ""},
			{"pub_sig", c.master, verify, true, ""},
			{"pub_sig, first contact", nil, verify, true, ""},
			{"pub_sig, new master key", c.sign, verify, true, ""},
			{"pub_sig missing", c.master, verify, false, "Invalid master key"},
			{"another master key", c.sign, nil, false, "Invalid master key"},
		} {
			c.newMinion(s, test.pinned, test.options)
			if test.name == "another master key" || test.name == "pub_sig, new master key" {
				// Its token is for a key we do not have: echo none, as stock masters do then.
				var body []byte
				s.ask(map[string]any{"op": "sign_in"}, &body)
				env, _ := saltwire.ParseEnvelope(body)
				req, _ := saltwire.ParseAuth(env.Load)
				req.Token, env.Load = nil, nil
				env.Load = saltwire.AppendAuth(nil, req)
				var got signedIn
				text := s.try(map[string]any{"op": "signed_in",
					"body": c.accept(t, saltwire.AppendEnvelope(nil, env), test.pubSig)}, &got)
				checkSignedIn(t, c, test.name, got, text, test.refused)
				continue
			}
			got, text := c.signIn(s, test.pubSig)
			checkSignedIn(t, c, test.name, got, text, test.refused)
		}
	})
}

func checkSignedIn(t *testing.T, c cluster, name string, got signedIn, text, refused string) {
	t.Helper()
	if refused != "" {
		check.Contains(t, text, refused, name, got)
		return
	}
	if text != "" || got.AES != c.aes.Text() || got.Session != c.session.Text() || got.PublishPort != 4505 {
		t.Errorf("%s: %s %s", name, got.Result, text)
	}
}

func TestStockMinionUnderstandsOurRefusals(t *testing.T) {
	c := newCluster(t)
	eachStock(t, func(t *testing.T, s *stock) {
		c.newMinion(s, c.master, nil)
		for _, test := range []struct {
			ret    any
			want   string
			signed bool
		}{{true, `"retry"`, true}, {false, `"retry"`, true}, {"full", `"full"`, true}, {saltwire.ReasonEncAlgo,
			`"bad enc algo"`, false}, {saltwire.ReasonSigAlgo, `"bad sig algo"`, false}} {
			var body []byte
			s.ask(map[string]any{"op": "sign_in"}, &body)
			env, _ := saltwire.ParseEnvelope(body)
			req, err := saltwire.ParseAuth(env.Load)
			require.NoError(t, err)
			reply := saltwire.AppendClearRet(nil, test.ret)
			if test.signed {
				inner := saltwire.AppendAuthRet(nil, test.ret, req.Nonce)
				sig, err := c.master.Sign(req.SigAlgo, inner)
				require.NoError(t, err)
				reply = saltwire.AppendSigned(nil, inner, sig)
			}
			var got struct{ Result json.RawMessage }
			s.ask(map[string]any{"op": "signed_in", "body": reply}, &got)
			if string(got.Result) != test.want {
				t.Errorf("%v: %s, want %s", test.ret, got.Result, test.want)
			}
		}
		var got struct{ Result bool }
		if s.ask(map[string]any{"op": "signed_in", "body": saltwire.BadLoad()}, &got); got.Result {
			t.Error("bad load signs in")
		}
	})
}

func TestStockMinionAcceptsOurPublications(t *testing.T) {
	c := newCluster(t)
	eachStock(t, func(t *testing.T, s *stock) {
		c.newMinion(s, c.master, nil)
		if _, text := c.signIn(s, false); text != "" {
			t.Fatal(text)
		}
		load, err := saltwire.AppendAny(nil, map[string]any{"jid": "20200101000000000000", "fun": "test.ping", "arg": []any{},
			"tgt": "*", "tgt_type": "glob", "serial": 3}, saltwire.Wire)
		require.NoError(t, err)
		for _, algo := range []string{saltcrypt.PKCS1v15SHA1, saltcrypt.PKCS1v15SHA224} {
			for _, serial := range []uint64{1 << 40, 1 << 41, 1<<63 - 1} {
				stamped, err := saltwire.SetSerial(nil, load, serial+uint64(len(algo)))
				require.NoError(t, err)
				text := saltcrypt.NewCrypticle(c.aes).Seal(nil, stamped, nil)
				sig, err := c.master.Sign(algo, text)
				require.NoError(t, err)
				c.newMinion(s, c.master, nil)
				if _, text := c.signIn(s, false); text != "" {
					t.Fatal(text)
				}
				var got map[string]any
				body := saltwire.AppendPub(nil, text, sig, algo)
				if s.ask(map[string]any{"op": "publication", "body": body}, &got); got["jid"] != "20200101000000000000" ||
					got["fun"] != "test.ping" {
					t.Errorf("%s %d: %v", algo, serial, got)
				}
				got = nil
				if s.ask(map[string]any{"op": "publication", "body": body}, &got); len(got) != 0 {
					t.Errorf("a replay is honoured: %v", got)
				}
			}
		}
		unsigned := saltwire.AppendPub(nil, saltcrypt.NewCrypticle(c.aes).Seal(nil, load, nil), nil, "")
		if text := s.try(map[string]any{"op": "publication", "body": unsigned}, nil); !strings.Contains(text,
			"no signature") {
			t.Errorf("unsigned: %s", text)
		}
	})
}

func TestStockRequestsAndOurReplies(t *testing.T) {
	c := newCluster(t)
	eachStock(t, func(t *testing.T, s *stock) {
		c.newMinion(s, c.master, map[string]any{"minion_sign_messages": true})
		if _, text := c.signIn(s, false); text != "" {
			t.Fatal(text)
		}
		var body []byte
		s.ask(map[string]any{"op": "request", "load": map[string]any{"cmd": "_return", "jid": "req", "fun": "test.ping",
			"return": "grüße"}}, &body)
		env, err := saltwire.ParseEnvelope(body)
		if err != nil || env.ID != "m1" || env.Version != 3 {
			t.Fatalf("%+v, %v", env, err)
		}
		session := saltcrypt.NewCrypticle(c.session)
		plain, err := session.Open(nil, env.Load)
		require.NoError(t, err)
		peek, err := saltwire.PeekLoad(plain)
		if err != nil || peek.Cmd != "_return" || peek.JID != "req" || !peek.HasSig {
			t.Errorf("%+v, %v", peek, err)
		}
		if tok, err := c.minion.Public().VerifyX931(peek.Tok); err != nil || string(tok) != "salt" {
			t.Errorf("tok %q, %v", tok, err)
		}
		for name, value := range map[string]any{"nil": nil, "map": map[string]any{"a": "b"},
			"text": strings.Repeat("x", 5000)} {
			msgpack, err := saltwire.AppendAny(nil, value, saltwire.Wire)
			require.NoError(t, err)
			var got any
			s.ask(map[string]any{"op": "reply", "body": saltwire.AppendRaw(nil, session.Seal(nil, msgpack, []byte(peek.Nonce)))},
				&got)
			want, _ := json.Marshal(value)
			if back, _ := json.Marshal(got); !bytes.Equal(back, want) {
				t.Errorf("%s came back as %s", name, back)
			}
		}
		wrong := saltwire.AppendRaw(nil, session.Seal(nil, []byte{0xc0}, []byte(strings.Repeat("0", 32))))
		check.Contains(t, s.try(map[string]any{"op": "reply", "body": wrong}, nil), "Nonce", "wrong nonce")
		if text := s.try(map[string]any{"op": "reply", "body": saltwire.BadLoad()}, nil); !strings.Contains(text,
			"AuthenticationError") {
			t.Errorf("bad load: %s", text)
		}
	})
}

// TestStockMsgpack compares our encodings with Salt's, byte by byte where maps have one key.
func TestStockMsgpack(t *testing.T) {
	eachStock(t, func(t *testing.T, s *stock) {
		for _, v := range []any{nil, true, -1, -33, -129, 127, 128, 255, 256, 65535, 65536, 1 << 40, "x",
			strings.Repeat("y", 31), strings.Repeat("y", 32),
			strings.Repeat("y", 255), strings.Repeat("y", 256), strings.Repeat("y", 65536), []any{1,
				"a"}, map[string]any{"k": []any{}}, 1.5, []byte{0xff, 0xfe}} {
			wire, err := saltwire.AppendAny(nil, v, saltwire.Wire)
			require.NoError(t, err)
			disk, err := saltwire.AppendAny(nil, v, saltwire.Disk)
			require.NoError(t, err)
			var got struct{ Wire, Disk []byte }
			if s.ask(map[string]any{"op": "loads", "body": wire}, &got); !bytes.Equal(got.Wire, wire) ||
				!bytes.Equal(got.Disk, disk) {
				t.Errorf("%.40v: ours % x / % x", v, wire[:min(len(wire), 20)], disk[:min(len(disk), 20)])
			}
		}
	})
}
