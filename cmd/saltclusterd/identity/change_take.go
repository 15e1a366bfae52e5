package identity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar"
	"saltclusterd/sidecar/localmaster"
)

// waitsFor returns the node that has to take the new identity before this one, or "". Nodes take it in the order of
// their names, and each waits until the master of the one before shows it. Nodes that are down and witnesses are
// skipped; a witness does not wait.
func (c *Change) waitsFor(ctx context.Context, agreed state.IdentityChange) node.ID {
	if c.master == nil {
		return ""
	}
	for _, mem := range c.cfg.Log.View().Members() {
		switch {
		case mem.ID >= c.cfg.Self:
			return ""
		case mem.Witness || !c.cfg.Alive(mem.ID):
			continue
		}
		s, err := c.cfg.Status(ctx, mem.ID)
		if err != nil || s.Fingerprint != agreed.FP || !s.Shown {
			return mem.ID
		}
	}
	return ""
}

// take puts the new identity in force on this node. After an interruption the next process repeats it.
func (c *Change) take(ctx context.Context, agreed state.IdentityChange) error {
	c.cfg.Logger.Info("the new identity is taken", "node", c.cfg.Self, "fingerprint", agreed.FP)
	if err := c.writeKeys(agreed); err != nil {
		return err
	}
	err := c.cfg.Takeover(ctx, func(step, message string, _ ...int) {
		c.cfg.Logger.Debug("renewed for the new identity", "step", step, "reason", message)
	})
	if err != nil {
		backoff.Sleep(ctx, takeoverAgain)
		return fmt.Errorf("not renewed for the new identity: %w", err)
	}
	c.handed = true
	return nil
}

// writeKeys writes the new key pair to disk; on a witness only its public half.
func (c *Change) writeKeys(agreed state.IdentityChange) error {
	if c.master == nil {
		return membership.WritePublicIdentity(c.cfg.PKIDir, []byte(agreed.Public))
	}
	_, private, err := c.openSealed(agreed.Sealed, agreed.FP)
	if err != nil {
		return err
	}
	c.savePins()
	return membership.WriteIdentity(c.cfg.PKIDir, private, []byte(agreed.Public))
}

// updateMaster installs the new identity in the local master and restarts it until it shows it.
func (c *Change) updateMaster(ctx context.Context) error {
	if c.shown.Load() {
		return nil
	}
	_, private, public, err := membership.ReadIdentity(c.cfg.PKIDir)
	if err != nil {
		return err
	}
	if _, _, err := localmaster.InstallIdentity(c.cfg.MasterKeys.Master, private, public); err != nil {
		return fmt.Errorf("install the new identity: %w", err)
	}
	if _, err := c.cfg.MasterKeys.Store(private); err != nil {
		return err
	}
	switch err := c.master.SignIn(ctx); {
	case err == nil:
		c.shown.Store(true)
		c.cfg.Logger.Info("the salt-master presents the new identity", "node", c.cfg.Self)
		return nil
	case !errors.Is(err, sidecar.ErrForeignIdentity) && !errors.Is(err, localmaster.ErrStaleIdentity):
		return nil // it is down or starting, which its health check reports
	case time.Since(c.restarted) < restartAgain:
		return nil
	}
	c.restarted = time.Now()
	return c.master.Restart(ctx, func(_, message string, _ ...int) { c.cfg.Logger.Info(message, "node", c.cfg.Self) })
}

// removeFile removes a file that may be missing.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget %s: %w", path, err)
	}
	return nil
}
