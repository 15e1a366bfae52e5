package guard

import (
	"net/netip"
	"time"

	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// tokenVersion is the payload version since which a request must name its id twice and carry ts and tok.
const tokenVersion = 3

// CheckLoad checks an opened request against its envelope and the accepted key of the minion, as handle_message and
// validate_token of channel/server.py do.
func (g *Guard) CheckLoad(env saltwire.Envelope, p saltwire.Peek, key *saltcrypt.PublicKey,
	remote netip.AddrPort) *Refusal {
	if reason := g.loadReason(env, p, key); reason != "" {
		return g.refuseRequest(reason, env.ID, p.Cmd, remote)
	}
	return nil
}

func (g *Guard) loadReason(env saltwire.Envelope, p saltwire.Peek, key *saltcrypt.PublicKey) Reason {
	strict := env.Version >= tokenVersion
	switch {
	case strict && p.ID != env.ID, p.ID != "" && p.ID != env.ID:
		return ReasonIDMismatch
	case strict && !goodNonce(p.Nonce), p.Nonce != "" && !goodNonce(p.Nonce):
		return ReasonNonce
	case strict && g.cfg.TTL() > 0 && !p.HasTS:
		return ReasonNoTimestamp
	case strict && g.isExpired(p.TS):
		return ReasonExpired
	case strict && !p.HasTok:
		return ReasonNoToken
	case p.HasTok && !g.tokens.verifyToken(env.ID, key, p.Tok):
		return ReasonBadToken
	}
	return ""
}

func (g *Guard) isExpired(ts int64) bool {
	ttl := g.cfg.TTL()
	if ttl <= 0 {
		return false
	}
	// ts is whatever its sender says: what is reckoned from it may overflow.
	return ts < g.cfg.Now().Unix()-int64(ttl/time.Second)
}

func goodNonce(s string) bool {
	if len(s) != nonceLength {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
