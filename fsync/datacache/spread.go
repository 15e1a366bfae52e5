package datacache

import (
	"context"
)

// Spread looks at data that the local master has just written of a minion, and waits until the other members have them,
// as far as they can be reached, or ctx ends.
func (s *Store) Spread(ctx context.Context, id string) {
	if s.Off() != "" || !validID(id) {
		return
	}
	await(ctx, s.hurry(id))
}

func await(ctx context.Context, waits []<-chan struct{}) {
	for _, done := range waits {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// hurry looks at one minion and returns what is closed when a peer has what was news.
func (s *Store) hurry(id string) (waits []<-chan struct{}) {
	root, err := s.disk.root()
	if err != nil {
		s.fail("look", id, err)
		return nil
	}
	defer root.Close()
	turn := s.turns.of(id)
	turn.Lock()
	defer turn.Unlock()
	if !s.Serves() {
		return nil
	}
	before, _ := s.entry(id)
	if _, err := s.observe(root, id, false); err != nil {
		s.fail("look", id, err)
		return nil
	}
	now, _ := s.entry(id)
	return s.waits(id, now.Stamp != before.Stamp)
}

// waits returns what is closed when a peer has what is on disk now of a minion; news: that has just become known. It is
// the id's turn.
func (s *Store) waits(id string, news bool) (waits []<-chan struct{}) {
	for _, p := range s.Feed().Peers() {
		if done := p.await(id, news); done != nil {
			waits = append(waits, done)
		}
	}
	return waits
}

// await returns what is closed when the peer has what is on disk now of a minion, nil when there is nothing to wait
// for: it has it, or did not take the last news. It is the id's turn.
func (p *peer) await(id string, news bool) <-chan struct{} {
	queued := news || p.Has(id)
	failed := p.Err() != nil
	p.mu.Lock()
	defer p.mu.Unlock()
	waits := p.waits
	if _, sending := p.sending[id]; !queued {
		if !sending {
			return nil
		}
		waits = p.sending
	}
	if failed || len(waits[id]) >= maxWaits {
		return nil
	}
	done := make(chan struct{})
	waits[id] = append(waits[id], done)
	return done
}

// maxWaits bounds who waits for one minion's data to reach one peer.
const maxWaits = 64

// sends says that what is on disk now of a minion is being pushed. It is the id's turn.
func (p *peer) sends(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sending[id] = append(p.sending[id], p.waits[id]...)
	delete(p.waits, id)
}

// sendsLater undoes sends.
func (p *peer) sendsLater(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits[id] = append(p.waits[id], p.sending[id]...)
	delete(p.sending, id)
}

// sent says that what was being pushed has arrived, or could not.
func (p *peer) sent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	release(p.sending)
}

// giveUp says that the peer cannot be reached, whatever was to be told it first.
func (p *peer) giveUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	release(p.sending)
	release(p.waits)
}

func release(all map[string][]chan struct{}) {
	for _, waits := range all {
		for _, done := range waits {
			close(done)
		}
	}
	clear(all)
}
