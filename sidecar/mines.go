package sidecar

import (
	"errors"
	"syscall"

	"saltclusterd/sidecar/router"
)

// useMine answers a call about mines. What only a master can answer goes to one, and a change that the disk does not
// take to another node.
func (p *Proxy) useMine(c *call) {
	c.trace.Step("mine")
	p.wg.Go(func() {
		if c.peek.Cmd == "_mine_get" && c.to.Gone() || p.ctx.Err() != nil {
			c.to.Drop()
			return
		}
		ctx, cancel := p.withDeadline(c.request)
		defer cancel()
		err := p.cfg.Mines.Answer(ctx, c.peek.Cmd, c.peek.ID, c.plain,
			func(reply []byte) { p.finishAction(c, router.DoMine, c.sealReply(reply)) })
		if err == nil {
			return
		}
		result := router.MasterOnly
		if isDiskError(err) && c.peek.Cmd != "_mine_get" {
			result = router.DiskFailed
		}
		p.finishWith(c, c.actionOutcome(router.DoMine, "", result), err)
	})
}

// isDiskError says whether an error means that a disk takes nothing now, from a master neither: a damaged file system
// (EUCLEAN) or a device that is gone do not.
func isDiskError(err error) bool {
	for _, is := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EUCLEAN,
		syscall.ESTALE, syscall.ENODEV, syscall.ENXIO} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}
