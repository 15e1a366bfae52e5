package sidecar

import (
	"bytes"

	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/saltwire"
)

// withoutAES begins a load that 3008 leaves unencrypted inside of TLS (salt/crypt.py TLSAwareCrypticle, with
// Crypticle's own marker). No released minion sends one: none of Salt's callers says whose certificate it is.
var withoutAES = []byte("tls_opt::pickle::")

// openWithoutAES takes a load without AES if the masters allow it (disable_aes_with_tls), it has come to this node over
// TLS, and the verified certificate of its sender names the minion as which it speaks. From here on it is sealed with
// the session's key, and so is the answer, which is what the minion reads beside loads without AES.
func (p *Proxy) openWithoutAES(x *request, env saltwire.Envelope, s *session) {
	reason := guard.Reason("")
	switch {
	case x.from != "" || p.cfg.WithoutAES == nil || !p.cfg.WithoutAES():
		reason = guard.ReasonWithoutAES
	case x.proves == nil || !x.proves(env.ID):
		reason = guard.ReasonCertificate
	}
	if reason != "" {
		p.refuseRequest(x, p.cfg.Guard.Refuse(reason, env.ID, x.remote))
		return
	}
	plain := bytes.TrimPrefix(env.Load, withoutAES)
	env.Load = s.crypticle.Seal(nil, plain, nil)
	x.body = saltwire.AppendEnvelope(nil, env)
	p.serveOpened(x, env, s, plain, s.crypticle)
}
