package jobcache

import (
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/sidecar/saltwire"
)

// settled is how old an empty file is that is not about to be filled.
const settled = 10 * time.Second

// mendJob looks once after a job's directory was opened for what a stock master stumbles over: an empty .minions.p
// raises whenever the job is read, an empty .load.p hides that there is none.
func (c *Cache) mendJob(j *jobDir) error {
	if j.mended {
		return nil
	}
	for name, repair := range map[string]func() error{
		".minions.p": func() error { return c.putFile(j.fd, ".minions.p", saltwire.AppendArrayHeader(nil, 0)) },
		".load.p":    func() error { return unix.Unlinkat(j.fd, ".load.p", 0) },
	} {
		st, there, err := statFile(j.fd, name)
		if err != nil {
			return err
		}
		if !there || st.Size > 0 || age(st) < settled {
			continue
		}
		if err := repair(); err != nil {
			return err
		}
		c.cfg.Logger.Warn("empty file of a job mended", "path", j.path+"/"+name)
	}
	j.mended = true
	return nil
}
