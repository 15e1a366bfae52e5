package signin

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// revoke takes the minion's key away and begins the epoch that it must not learn.
func (c *cluster) revoke(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	c.standing = Standing{Rev: 2}
	c.mu.Unlock()
	key, err := saltcrypt.NewKey()
	require.NoError(t, err)
	if _, err := c.epochs.Begin(epochs.Epoch{Number: 2, Key: key, Rev: 3, RevokedRev: 2}, 0); err != nil {
		t.Fatal(err)
	}
}

// start serves a sign-in and returns where its end is told.
func (c *cluster) start(t *testing.T) <-chan []byte {
	t.Helper()
	got := make(chan []byte, 1)
	c.svc.Serve(&Request{
		Auth: c.request(t), Reply: func(b []byte) { got <- b }, Drop: func() { got <- nil },
		Gone: func() bool { return false }, At: time.Now(),
	})
	return got
}

func dropped(t *testing.T, got <-chan []byte) {
	t.Helper()
	select {
	case reply := <-got:
		if reply != nil {
			t.Error("a minion whose key was taken away is told the epoch that began for that")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("neither answered nor dropped")
	}
}

// askedMaster accepts when it may.
type askedMaster struct {
	asked, may chan struct{}
	reply      []byte
}

func (m askedMaster) Do(context.Context, []byte) ([]byte, error) {
	close(m.asked)
	<-m.may
	return m.reply, nil
}

// TestRevokedWhileItWaits: a key may be taken away after it was found to be accepted and before its minion is answered.
func TestRevokedWhileItWaits(t *testing.T) {
	t.Run("for a CPU", func(t *testing.T) { synctest.Test(t, revokedWithoutCPU) })
	t.Run("for the master", func(t *testing.T) {
		m := &askedMaster{asked: make(chan struct{}), may: make(chan struct{})}
		c := newCluster(t, func(cfg *Config) { cfg.Master, cfg.AskAll = m, func() bool { return true } })
		m.reply = masterReply(t, c, saltwire.AppendAuthAccept(nil, saltwire.AuthAccept{
			PubKey: c.identity.PublicText(), PublishPort: 4505, Sig: []byte("sig"), AES: []byte("aes"),
			Session: []byte("session"), Nonce: "n",
		}))
		c.standing = Standing{Pub: c.minion.PublicText(), Accepted: true, Known: true}
		got := c.start(t)
		<-m.asked
		c.revoke(t)
		close(m.may)
		dropped(t, got)
	})
}

func revokedWithoutCPU(t *testing.T) {
	c := newCluster(t)
	c.standing = Standing{Pub: c.minion.PublicText(), Accepted: true, Known: true}
	slots := c.svc.budget.Load().slots
	for range cap(slots) {
		slots <- struct{}{}
	}
	got := c.start(t)
	synctest.Wait() // until its key has been looked at, and it waits for a CPU
	c.revoke(t)
	for range cap(slots) {
		<-slots
	}
	dropped(t, got)
}
