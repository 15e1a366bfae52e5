package sidecar

import "saltclusterd/sidecar/saltwire"

// IdentifySubscriber returns the minion that a subscriber with Salt's tcp transport names itself (edge.PubConfig).
// false: it does not prove it by the cluster's AES key, of the epoch in force or the one before, and by the minion's
// token.
func (p *Proxy) IdentifySubscriber(said []byte) (id string, ok bool) {
	load, err := saltwire.ParseSendID(said)
	if err != nil {
		return "", false
	}
	_, plain := p.openShared(load)
	id, tok, err := saltwire.ParseNamedToken(plain)
	if err != nil {
		return "", false
	}
	pub, ok := p.cfg.Keys.Accepted(id)
	if !ok {
		return "", false
	}
	s, err := p.sessions.findSession(id, pub)
	return id, err == nil && p.cfg.Guard.CheckToken(id, s.public, tok)
}
