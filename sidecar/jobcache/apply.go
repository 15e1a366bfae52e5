package jobcache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"saltclusterd/durable/torn"
	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
)

// Apply writes a plan's files. Applying a plan twice has the effect of applying it once. A second return of a minion
// for a job is dropped, as a stock master does, but a directory that a killed master left without its return is
// completed. Errors are the disk's: try again.
func (c *Cache) Apply(ctx context.Context, p Plan) error {
	c.watchDisk()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range p.Jobs {
		if err := ctx.Err(); err != nil {
			return err
		}
		job := &p.Jobs[i]
		if err := c.applyJob(job); err != nil {
			c.metrics.failed()
			return fmt.Errorf("job cache: %w", err)
		}
		if job.Minion != "" && !job.Ahead {
			c.cfg.Log.Return(job.Minion, job.JID)
		}
	}
	for _, id := range p.Syndics {
		if err := c.writeSyndic(id); err != nil {
			return fmt.Errorf("job cache: %w", err)
		}
	}
	return nil
}

// applyJob tries again when the directory it had open is gone: the master cleans old jobs up.
func (c *Cache) applyJob(job *Job) error {
	for tries := 0; ; tries++ {
		j, err := c.openJob(job.JID, job.Unasked())
		if err != nil {
			return err
		}
		if err = c.writeJob(j, job); err == nil || tries == 2 || !errors.Is(err, unix.ENOENT) {
			return err
		}
		c.dirs.dropDir(j.path)
	}
}

func (c *Cache) writeJob(j *jobDir, job *Job) error {
	if j.made && job.Unasked() && !j.loaded {
		return c.writeNew(j, job)
	}
	if err := c.mendJob(j); err != nil {
		return err
	}
	if err := c.jidFile(j, job); err != nil {
		return err
	}
	if err := c.loadFile(j, job); err != nil {
		return err
	}
	if job.Minion != "" {
		_, noCache, err := statFile(j.fd, "nocache")
		if err == nil && !noCache {
			err = c.writeMinion(j, job)
		}
		if err != nil {
			return err
		}
	}
	if job.EndTime != "" {
		return c.putFile(j.fd, "endtime", []byte(job.EndTime))
	}
	return nil
}

// writeNew is writeJob for a job that has no other writer, into a directory that was just made: there is nothing in it
// to look for.
func (c *Cache) writeNew(j *jobDir, job *Job) error {
	if job.NoCache {
		if err := c.putNew(j.fd, "nocache", nil); err != nil {
			return err
		}
	}
	if err := c.putNew(j.fd, "jid", []byte(job.JID)); err != nil {
		return err
	}
	j.touched = time.Now()
	if err := c.putNew(j.fd, ".load.p", job.Load); err != nil {
		return err
	}
	list := saltwire.AppendArrayHeader(nil, 0)
	if job.Minions != nil {
		list = appendList(*job.Minions)
	}
	if err := c.putNew(j.fd, ".minions.p", list); err != nil {
		return err
	}
	j.loaded = true
	if !job.NoCache {
		if err := c.writeMinion(j, job); err != nil {
			return err
		}
	}
	if job.EndTime != "" {
		return c.putNew(j.fd, "endtime", []byte(job.EndTime))
	}
	return nil
}

// jidFile is salt/returners/local_cache.py:prep_jid.
func (c *Cache) jidFile(j *jobDir, job *Job) error {
	if job.NoCache {
		if _, there, err := statFile(j.fd, "nocache"); err != nil || !there {
			if err = errors.Join(err, c.putFile(j.fd, "nocache", nil)); err != nil {
				return err
			}
		}
	}
	if !job.Known || time.Since(j.touched) < touchEvery {
		return nil
	}
	st, there, err := statFile(j.fd, "jid")
	switch {
	case err != nil:
		return err
	case !there || st.Size != int64(len(job.JID)):
		err = c.putFile(j.fd, "jid", []byte(job.JID))
	default:
		err = unix.UtimesNanoAt(j.fd, "jid", nil, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil {
		j.touched = time.Now()
	}
	return err
}

// loadFile is salt/returners/local_cache.py:save_load.
func (c *Cache) loadFile(j *jobDir, job *Job) error {
	if job.Load == nil || !job.Replace && j.loaded {
		return nil
	}
	if !job.Replace {
		st, there, err := statFile(j.fd, ".load.p")
		if err != nil {
			return err
		}
		if there && st.Size > 1 { // not empty, nor an empty map
			j.loaded = true
			return nil
		}
	}
	if err := c.putFile(j.fd, ".load.p", job.Load); err != nil {
		return err
	}
	j.loaded = true
	if job.Minions == nil {
		return c.emptyList(j)
	}
	return c.minionList(j, *job.Minions)
}

// emptyList gives a job that this master has not published (its load was kept from a return) a list of no minions.
// Stock masters leave it out, and from then on raise whenever the job is read, even for the next minion's return.
func (c *Cache) emptyList(j *jobDir) error {
	if _, there, err := statFile(j.fd, ".minions.p"); err != nil || there {
		return err
	}
	return c.putFile(j.fd, ".minions.p", saltwire.AppendArrayHeader(nil, 0))
}

// minionList is save_minions; 3008 merges with what is there.
func (c *Cache) minionList(j *jobDir, ids []string) error {
	if c.major >= 3008 {
		ids = append(slices.Clone(ids), c.listMinions(j)...)
		slices.Sort(ids)
		ids = slices.Compact(ids)
	}
	return c.putFile(j.fd, ".minions.p", appendList(ids))
}

func appendList(ids []string) []byte {
	raw := saltwire.AppendArrayHeader(nil, len(ids))
	for _, id := range ids {
		raw = saltwire.AppendStr(raw, id)
	}
	return raw
}

func (c *Cache) listMinions(j *jobDir) (ids []string) {
	raw, err := os.ReadFile(filepath.Join(c.cfg.CacheDir, j.path, ".minions.p"))
	if err != nil {
		return nil
	}
	list, _ := saltvalue.ParseList(raw)
	for _, e := range list {
		if id, ok := saltvalue.Text(e); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// writeMinion is salt/returners/local_cache.py:returner. The directory is filled under another name first: a stock
// master that finds it takes the return for stored.
func (c *Cache) writeMinion(j *jobDir, job *Job) error {
	temp, mode := tempPrefix+strconv.FormatUint(xxhash.Sum64String(job.Minion), 16), c.dirMode()
	err := unix.Mkdirat(j.fd, temp, mode)
	if errors.Is(err, unix.EEXIST) { // left behind by a kill
		if err = removeTemp(j.fd, temp); err == nil {
			err = unix.Mkdirat(j.fd, temp, mode)
		}
	}
	if err != nil {
		return &os.PathError{Op: "mkdir", Path: temp, Err: err}
	}
	if err = c.adoptFile(j.fd, temp, mode); err == nil {
		err = c.fillMinion(j.fd, temp, job)
	}
	if err == nil {
		if err = unix.Renameat(j.fd, temp, j.fd, job.Minion); err == nil {
			c.noteStored(job)
			return nil
		}
	}
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.ENOTDIR) {
		err = c.writeAgain(j, temp, job)
	}
	return errors.Join(err, removeTemp(j.fd, temp))
}

func (c *Cache) fillMinion(dir int, temp string, job *Job) error {
	if job.Out != nil {
		if err := c.createFile(dir, temp+"/out.p", job.Out); err != nil {
			return err
		}
	}
	if job.Ahead {
		if err := c.createFile(dir, temp+"/"+AheadFile, nil); err != nil {
			return err
		}
	}
	return c.createFile(dir, temp+"/return.p", job.Return)
}

// writeAgain handles a minion's directory that is there already: a second return, or what a killed master or a power
// loss left.
func (c *Cache) writeAgain(j *jobDir, temp string, job *Job) error {
	st, there, err := statFile(j.fd, job.Minion)
	if err != nil || !there || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return err
	}
	was, err := torn.Look(j.fd, job.Minion+"/return.p")
	if err != nil {
		return err
	}
	out, err := torn.Look(j.fd, job.Minion+"/out.p")
	if err != nil {
		return err
	}
	whole := was == torn.Whole && out != torn.Torn
	wasAhead, err := c.markAhead(j, temp, job, whole)
	if err != nil {
		return err
	}
	if whole {
		c.metrics.repeated()
		if wasAhead {
			c.Tell(*job)
		}
		if !job.Ahead {
			c.compareReturn(j, job)
		}
		return nil
	}
	if job.Out != nil {
		if err := unix.Renameat(j.fd, temp+"/out.p", j.fd, job.Minion+"/out.p"); err != nil {
			return err
		}
	}
	c.cfg.Logger.Warn("half-written return completed", "jid", job.JID, "minion", job.Minion)
	if err := unix.Renameat(j.fd, temp+"/return.p", j.fd, job.Minion+"/return.p"); err != nil {
		return err
	}
	c.noteStored(job)
	return nil
}

func (c *Cache) noteStored(job *Job) {
	c.metrics.stored()
	if c.cfg.Stored != nil {
		c.cfg.Stored(job)
	}
}

// removeTemp removes a directory of ours, which holds nothing but what fill writes.
func removeTemp(dir int, temp string) error {
	for _, name := range []string{"/return.p", "/out.p", "/" + AheadFile} {
		if err := unix.Unlinkat(dir, temp+name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	if err := unix.Unlinkat(dir, temp, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// writeSyndic marks a syndic in cachedir/syndics.
func (c *Cache) writeSyndic(id string) error {
	path := filepath.Join("syndics", id)
	full := filepath.Join(c.cfg.CacheDir, path)
	if fileExists(full) {
		return nil
	}
	if err := c.makeDirs("syndics"); err != nil {
		return err
	}
	err := c.createFile(unix.AT_FDCWD, full, nil)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}
