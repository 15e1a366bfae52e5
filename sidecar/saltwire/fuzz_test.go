package saltwire_test

import (
	"bytes"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
)

// seed gives a fuzz target what stock daemons sent, opened where it was sealed.
func seed(f *testing.F, add func(auth, reply, request, load, pub, pubLoad []byte)) {
	f.Helper()
	for _, v := range readGolden(f) {
		for _, row := range v.Auth {
			add(row.Request, row.Reply, nil, nil, nil, nil)
		}
		for i, row := range v.Requests {
			if row.Key == "" || i > 20 {
				continue
			}
			env, err := saltwire.ParseEnvelope(row.Request)
			require.NoError(f, err)
			load, err := crypticle(f, row.Key).Open(nil, env.Load)
			require.NoError(f, err)
			add(nil, nil, row.Request, load, nil, nil)
		}
		for _, row := range v.Publications {
			pub, err := saltwire.ParsePub(row.Body)
			require.NoError(f, err)
			load, err := crypticle(f, row.Key).Open(nil, pub.Load)
			require.NoError(f, err)
			add(nil, nil, nil, nil, row.Body, load)
		}
	}
}

func addNonNil(f *testing.F, b []byte) {
	if b != nil {
		f.Add(b)
	}
}

func FuzzParseEnvelope(f *testing.F) {
	seed(f, func(auth, _, request, _, _, _ []byte) { addNonNil(f, auth); addNonNil(f, request) })
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := saltwire.ParseEnvelope(body)
		if err != nil {
			return
		}
		again, err := saltwire.ParseEnvelope(saltwire.AppendEnvelope(nil, e))
		if err != nil || again.Enc != e.Enc || again.ID != e.ID || again.Version != e.Version ||
			!bytes.Equal(again.Load, e.Load) {
			t.Fatalf("%+v became %+v, %v", e, again, err)
		}
	})
}

func FuzzPeekLoad(f *testing.F) {
	seed(f, func(_, _, _, load, _, _ []byte) { addNonNil(f, load) })
	f.Fuzz(func(_ *testing.T, plain []byte) {
		_, _ = saltwire.PeekLoad(plain)
	})
}

func FuzzParseAuth(f *testing.F) {
	seed(f, func(auth, _, _, _, _, _ []byte) {
		if env, err := saltwire.ParseEnvelope(auth); err == nil {
			f.Add(env.Load)
		}
	})
	f.Fuzz(func(t *testing.T, load []byte) {
		a, err := saltwire.ParseAuth(load)
		if err != nil {
			return
		}
		again, err := saltwire.ParseAuth(saltwire.AppendAuth(nil, a))
		if err != nil || again.ID != a.ID || again.Pub != a.Pub || again.Nonce != a.Nonce || saltwire.ValidID(a.ID) != nil {
			t.Fatalf("%+v became %+v, %v", a, again, err)
		}
	})
}

func FuzzParseAuthReply(f *testing.F) {
	seed(f, func(_, reply, _, _, _, _ []byte) { addNonNil(f, reply) })
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := saltwire.ParseAuthReply(body)
		if err == nil && r.Outcome == saltwire.AuthAccepted && (r.AES == nil || r.Session == nil || r.PubKey == "") {
			t.Fatalf("accepted without keys: %+v", r)
		}
		_, _ = saltwire.ParsePrivateReply(body)
		_, _ = saltwire.ParseSignedReply(body)
		_, _ = saltwire.ParsePrivateData(body)
	})
}

func FuzzParsePub(f *testing.F) {
	seed(f, func(_, _, _, _, pub, _ []byte) { addNonNil(f, pub) })
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := saltwire.ParsePub(body)
		if err != nil {
			return
		}
		again, err := saltwire.ParsePub(saltwire.AppendPub(nil, p.Load, p.Sig, p.SigAlgo))
		if p.Sig != nil && p.SigAlgo != "" && (err != nil || !bytes.Equal(again.Load, p.Load) ||
			!bytes.Equal(again.Sig, p.Sig)) {
			t.Fatalf("%+v became %+v, %v", p, again, err)
		}
	})
}

func FuzzPeekPub(f *testing.F) {
	seed(f, func(_, _, _, _, _, load []byte) { addNonNil(f, load) })
	f.Fuzz(func(_ *testing.T, plain []byte) { _, _ = saltwire.PeekPub(plain) })
}

func FuzzSetSerial(f *testing.F) {
	seed(f, func(_, _, _, _, _, load []byte) {
		if load != nil {
			f.Add(load, uint64(1))
		}
	})
	f.Fuzz(func(t *testing.T, plain []byte, serial uint64) {
		before, err := saltwire.PeekPub(plain)
		if err != nil {
			_, _ = saltwire.SetSerial(nil, plain, serial)
			return
		}
		with, err := saltwire.SetSerial(nil, plain, serial)
		require.NoError(t, err, "a load that peeks well")
		after, err := saltwire.PeekPub(with)
		if err != nil || after.Serial != serial || !after.HasSerial || after.JID != before.JID ||
			len(after.Targets) != len(before.Targets) {
			t.Fatalf("%+v became %+v, %v", before, after, err)
		}
	})
}

func FuzzSplitEvent(f *testing.F) {
	f.Add(saltwire.AppendEvent(nil, "salt/job/1/ret/web1", []byte("\x80")))
	f.Add([]byte("a\n\nb\n\nc"))
	f.Fuzz(func(t *testing.T, entry []byte) {
		tag, data, ok := saltwire.SplitEvent(entry)
		if ok && !bytes.Equal(saltwire.AppendEvent(nil, tag, data), entry) {
			t.Fatalf("%q was split into %q and %q", entry, tag, data)
		}
	})
}
