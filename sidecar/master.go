package sidecar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/upstream"
)

const (
	// masterTimeout is how long the local master has for a return that only it can take; then the return is kept for it. A
	// minion asks three times, with 5 to 10 s each (return_retry_timer), and drops a return that was not acknowledged.
	masterTimeout = 3 * time.Second
	// nonceSize is the length of the nonce a master puts before its reply (uuid4().hex).
	nonceSize = 32
)

// badLoad is what a master answers when it cannot open a request.
var badLoad = saltwire.BadLoad()

// errNoMasterKey says that the local master's own AES key is not known now.
var errNoMasterKey = errors.New("not signed in at the local master")

// forwardClear sends a clear request to the local master as it is.
func (p *Proxy) forwardClear(x *request, cmd string) {
	p.cfg.Master.Go(p.ctx, p.requestDeadline(x), x.remote.Addr().String(), x.body, func(reply []byte, err error) {
		if err != nil {
			p.abandonRequest(x, cmd, router.DoAskMaster.String(), err)
			return
		}
		x.to.Reply(reply)
	})
}

// askMaster sends a call to the local master, when the file gate is open.
func (p *Proxy) askMaster(c *call) {
	if !p.isReturn(c) && !p.mayTake(c) {
		return
	}
	p.passGate(c, func() {
		p.renewPillar(c)
		if p.isReturn(c) {
			if err := p.cfg.Returns.MasterTakes(len(c.plain)); err != nil {
				p.masterFailed(c, router.DiskFailed, err)
				return
			}
		}
		c.trace.Carry("master", "")
		if c.shared {
			p.sendShared(c)
			return
		}
		p.whenOnDisk(c, func() { p.sendSealed(c) })
	})
}

// masterDeadline bounds a call at the local master.
func (p *Proxy) masterDeadline(c *call) time.Time {
	if p.isReturn(c) && !c.shared && !c.progress.Deferred && p.cfg.Returns.Defers() {
		return time.Now().Add(min(masterTimeout, p.cfg.ForwardTimeout))
	}
	return p.callDeadline(c)
}

// sendSealed sends a call as it came, or sealed anew when the local master holds another session key than the minion
// has used.
func (p *Proxy) sendSealed(c *call) {
	local, same, err := p.cfg.Sessions.Ensure(c.env.ID, c.session.key)
	if err != nil {
		p.masterFailed(c, router.Unsent, err)
		return
	}
	if !same || c.crypticle != c.session.crypticle {
		p.sendResealed(c, saltcrypt.NewCrypticle(local))
		return
	}
	p.cfg.Master.Go(p.ctx, p.masterDeadline(c), c.senderID(), c.body, func(reply []byte, err error) {
		if err == nil && bytes.Equal(reply, badLoad) {
			p.sendAgain(c)
			return
		}
		p.masterAnswered(c, reply, err)
	})
}

// sendAgain handles "bad load" for a request that was found good here: the master must hold another session key
// than the file we wrote says (a 3006 worker caches it). What the file says now decides; failing that the minion signs
// in again.
func (p *Proxy) sendAgain(c *call) {
	p.cfg.Sessions.Invalidate(c.env.ID)
	local, same, err := p.cfg.Sessions.Ensure(c.env.ID, c.session.key)
	if err != nil || same {
		p.finishAction(c, router.DoAskMaster, badLoad)
		return
	}
	c.progress.Others = nil // this master has had it
	p.sendResealed(c, saltcrypt.NewCrypticle(local))
}

// sendShared sends a version 2 call to the local master under that master's own AES key.
func (p *Proxy) sendShared(c *call) {
	local := p.cfg.MasterAES()
	if local == nil {
		p.masterFailed(c, router.Unsent, errNoMasterKey)
		return
	}
	p.sendResealed(c, local)
}

// sendResealed sends a call to a local master that holds another key than the minion: the same plaintext bytes under
// the master's, and the reply's plaintext under the minion's. Private replies (pillar) are encrypted to the minion's
// own public key and pass as they are.
func (p *Proxy) sendResealed(c *call, crypticle *saltcrypt.Crypticle) {
	p.metrics.resealed.Inc()
	env := c.env
	env.Load = crypticle.Seal(nil, c.plain, nil)
	p.cfg.Master.Go(p.ctx, p.masterDeadline(c), c.senderID(), saltwire.AppendEnvelope(nil, env),
		func(reply []byte, err error) {
			if err == nil {
				reply = resealReply(reply, crypticle, c.crypticle)
			}
			p.masterAnswered(c, reply, err)
		})
}

// masterAnswered ends a call at the local master.
func (p *Proxy) masterAnswered(c *call, reply []byte, err error) {
	switch {
	case upstream.Retryable(err):
		p.masterFailed(c, router.Unsent, err)
	case err != nil:
		p.masterFailed(c, router.Unanswered, err)
	case isQuestion(c) && c.isEmpty(reply):
		p.masterFailed(c, router.UnknownJob, errNotPublished)
	default:
		p.finishAction(c, router.DoAskMaster, reply)
	}
}

func (p *Proxy) masterFailed(c *call, r router.Result, err error) {
	c.masterResult = r
	p.finishWith(c, c.actionOutcome(router.DoAskMaster, "", r), err)
}

// resealReply turns a reply under the key from into one under the key to. One that is not sealed with the former (a
// private one, an error text) is returned as it is.
func resealReply(reply []byte, from, to *saltcrypt.Crypticle) []byte {
	sealed, ok := saltwire.Bytes(reply)
	if !ok {
		return reply
	}
	plain, err := from.Open(nil, sealed)
	if err != nil || len(plain) < nonceSize {
		return reply
	}
	sealed = to.Seal(nil, plain[nonceSize:], plain[:nonceSize])
	return saltwire.AppendRaw(nil, sealed)
}

// Return gives the local master a load that a minion sent earlier (returns.Python), sealed with what the master holds
// for the minion now.
func (p *Proxy) Return(ctx context.Context, minion string, load []byte) error {
	pub, ok := p.cfg.Keys.Accepted(minion)
	if !ok {
		return returns.ErrGone
	}
	s, err := p.sessions.findSession(minion, pub)
	if err != nil {
		return fmt.Errorf("%w: %w", returns.ErrGone, err)
	}
	if wait := p.cfg.Keys.OnDisk(minion); wait != nil {
		if err := wait(ctx); err != nil {
			return fmt.Errorf("%w: %w", returns.ErrNotAsked, err)
		}
	}
	for range 2 {
		local, _, err := p.cfg.Sessions.Ensure(minion, s.key)
		if err != nil {
			return fmt.Errorf("%w: %w", returns.ErrNotAsked, err)
		}
		reply, err := p.sendLoad(ctx, minion, saltcrypt.NewCrypticle(local).Seal(nil, load, nil))
		if upstream.Retryable(err) {
			err = fmt.Errorf("%w: %w", returns.ErrNotAsked, err)
		}
		if err != nil {
			return err
		}
		if string(reply) != string(badLoad) {
			return nil
		}
		p.cfg.Sessions.Invalidate(minion)
	}
	return returns.ErrRefused
}

// sendLoad sends one sealed load of a minion to the local master and waits for the answer.
func (p *Proxy) sendLoad(ctx context.Context, minion string, sealed []byte) ([]byte, error) {
	env := saltwire.Envelope{Enc: saltwire.EncAES, Version: sessionVersion, HasVersion: true, ID: minion, Load: sealed}
	type answer struct {
		reply []byte
		err   error
	}
	got := make(chan answer, 1)
	p.cfg.Master.Go(ctx, time.Now().Add(p.cfg.ForwardTimeout), "", saltwire.AppendEnvelope(nil, env),
		func(reply []byte, err error) { got <- answer{reply, err} })
	a := <-got
	return a.reply, a.err
}
