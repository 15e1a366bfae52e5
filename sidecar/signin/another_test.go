package signin

import (
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// While the identity is changed a minion is answered under the one that it has pinned, in all three places that it
// looks at.
func TestAnsweredUnderThePinnedIdentity(t *testing.T) {
	pins := make(chan Pin, 16)
	c := newCluster(t, func(cfg *Config) { cfg.Pinned = func(_, _ string, p Pin) { pins <- p } })
	second, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	foreign, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	signer, err := ComputedPubSig(foreign, second.PublicText())
	require.NoError(t, err)
	c.standing = Standing{Pub: c.minion.PublicText(), Accepted: true, Known: true}
	ask := func(pinned *saltcrypt.MasterKey) (auth saltwire.AuthRequest) {
		auth = c.request(t)
		auth.Token = nil
		if pinned != nil {
			if auth.Token, err = pinned.Public().EncryptOAEP(auth.EncAlgo, []byte("the minion's token")); err != nil {
				t.Fatal(err)
			}
		}
		return auth
	}
	first := c.identity
	for _, step := range []struct {
		name    string
		another *Another
		pinned  *saltcrypt.MasterKey
		under   *saltcrypt.MasterKey
		pin     Pin
		token   bool
	}{
		{"alone", nil, first, first, PinOurs, true},
		{"alone, another one is pinned", nil, second, first, PinForeign, false},
		{"both, the one in force", &Another{Identity: second}, first, first, PinOurs, true},
		{"both, the other", &Another{Identity: second, PubSigner: signer}, second, second, PinAnother, true},
		{"both, none", &Another{Identity: second}, nil, first, PinNone, false},
		{"both, a third", &Another{Identity: second}, foreign, first, PinForeign, false},
		{"alone again", nil, second, first, PinForeign, false},
	} {
		c.svc.Answer(step.another)
		auth := ask(step.pinned)
		body := c.answer(t, auth)
		r, err := saltwire.ParseAuthReply(body)
		if err != nil || r.Outcome != saltwire.AuthAccepted {
			t.Fatalf("%s: %+v, %v", step.name, r.Outcome, err)
		}
		if got := <-pins; got != step.pin {
			t.Errorf("%s: pin %d, want %d", step.name, got, step.pin)
		}
		if r.PubKey != step.under.PublicText() || (len(r.Token) > 0) != step.token {
			t.Errorf("%s: under another key, or a token of %d bytes", step.name, len(r.Token))
		}
		check.NoError(t, step.under.Public().Verify(auth.SigAlgo, r.Load, r.Sig), step.name, "the signature")
		if _, err := step.under.Public().VerifyX931(r.SigX931); err != nil {
			t.Errorf("%s: the signature of the AES key: %v", step.name, err)
		}
		if r.HasPubSig != (step.another != nil && step.another.PubSigner != nil && step.pin == PinAnother) {
			t.Errorf("%s: signature of the public key: %v", step.name, r.HasPubSig)
		}
	}
}
