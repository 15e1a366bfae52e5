package chaos

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"saltclusterd/integration/history"
	"saltclusterd/integration/lab"
)

//go:embed py/*.py
var scripts embed.FS

// writeScripts lays the Python programs out where every host sees them, also one whose disk is away.
func writeScripts(l *lab.Lab) (dir string, err error) {
	dir = filepath.Join(l.Dir(), "out")
	for _, name := range []string{"publish.py", "listen.py", "jobcache.py"} {
		raw, err := scripts.ReadFile("py/" + name)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o644); err != nil {
			return "", fmt.Errorf("write scripts: %w", err)
		}
	}
	return dir, nil
}

// clients are Salt's own clients on one node: one that publishes what it is told to, and one that listens on the bus.
type clients struct {
	node     *lab.Node
	rec      *history.Recorder
	listener *lab.Process
	pub      *lab.Process

	mu      sync.Mutex
	orders  *os.File
	asked   int       // number of the publication that is not answered yet; 0: none
	askedAt time.Time // when it was ordered
	ready   int       // starts of clients seen
}

func newClients(w *world, n *lab.Node, dir string) *clients {
	c := &clients{node: n, rec: w.rec}
	config := filepath.Join(n.Master.ConfigDir, "master")
	program := func(name string) *lab.Process {
		return n.NewProcess(lab.Spec{
			Name: name, Env: n.Master.Env(),
			Argv: []string{"/usr/bin/env", "python", filepath.Join(dir, name+".py"), config, strconv.Itoa(w.cfg.Padding)},
		})
	}
	c.pub, c.listener = program("publish"), program("listen")
	return c
}

// ensure starts what does not run. A number that was asked for and not answered has an unknown outcome then.
func (c *clients) ensure(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.listener.Running() {
		if err := c.listener.Start(ctx); err != nil {
			return err
		}
	}
	if c.pub.Running() {
		return nil
	}
	c.giveUp("the publisher was killed")
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	if c.orders != nil {
		c.orders.Close()
	}
	c.pub.Stdin, c.orders = r, w
	return c.pub.Start(ctx)
}

func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveUp("the end")
	if c.orders != nil {
		c.orders.Close()
	}
}

// giveUp is called with the lock held.
func (c *clients) giveUp(why string) {
	if c.asked == 0 {
		return
	}
	c.rec.Publication(history.Publication{
		Number: c.asked, Node: c.node.Name, Start: c.askedAt, End: time.Now(), Outcome: history.Unknown, Error: why,
	})
	c.asked = 0
}

var errBusy = errors.New("the publisher waits for its master")

// publish orders a publication; its outcome comes into the history later (published).
func (c *clients) publish(number int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked != 0 || c.orders == nil || !c.pub.Running() {
		return errBusy
	}
	if _, err := fmt.Fprintln(c.orders, number); err != nil {
		return err
	}
	c.asked, c.askedAt = number, time.Now()
	return nil
}

// idle tells whether the publisher has answered everything.
func (c *clients) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked == 0
}

func (c *clients) started() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

// watch carries what the clients print into the history.
func (c *clients) watch(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { tail(ctx, c.pub.LogPath(), c.published) })
	wg.Go(func() { tail(ctx, c.listener.LogPath(), c.heard) })
}

func (c *clients) published(line []byte) {
	var p struct {
		Ready      bool
		Number     int
		Start, End float64
		Jid, Error string
	}
	if json.Unmarshal(line, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.Ready {
		c.ready++
		return
	}
	out := history.OK
	if p.Jid == "" { // also a time-out: the publication may be on its way all the same
		out = history.Unknown
	}
	c.rec.Publication(history.Publication{
		Number: p.Number, Node: c.node.Name, Start: unix(p.Start), End: unix(p.End), Outcome: out, Jid: p.Jid, Error: p.Error,
	})
	if c.asked == p.Number {
		c.asked = 0
	}
}

func (c *clients) heard(line []byte) {
	var e struct {
		Ready bool
		Tag   string
		At    float64
	}
	if json.Unmarshal(line, &e) != nil {
		return
	}
	if e.Ready {
		c.mu.Lock()
		c.ready++
		c.mu.Unlock()
		return
	}
	c.rec.Heard(history.Heard{Node: c.node.Name, Tag: e.Tag, At: unix(e.At)})
}

func unix(seconds float64) time.Time { return time.UnixMicro(int64(seconds * 1e6)) }

// cached asks Salt on this node for all returns of the jids.
func (c *clients) cached(ctx context.Context, dir string, jids []string) error {
	raw, err := json.Marshal(jids)
	if err != nil {
		return err
	}
	list := filepath.Join(dir, "jids-"+c.node.Name+".json")
	if err := os.WriteFile(list, raw, 0o644); err != nil {
		return err
	}
	res, err := c.node.Exec(ctx, c.node.Master.Env(), "/usr/bin/env", "python", filepath.Join(dir, "jobcache.py"),
		filepath.Join(c.node.Master.ConfigDir, "master"), list)
	if err == nil {
		err = res.Err()
	}
	if err != nil {
		return fmt.Errorf("read the job cache of %s: %w", c.node.Name, err)
	}
	var all map[string]map[string][2]any
	if err := json.Unmarshal([]byte(res.Stdout), &all); err != nil {
		return fmt.Errorf("read the job cache of %s: %w", c.node.Name, err)
	}
	for jid, returns := range all {
		for minion, r := range returns {
			out := history.Cached{Node: c.node.Name, Jid: jid, Minion: minion, Number: -1}
			if n, ok := r[0].(float64); ok {
				out.Number = int(n)
			}
			out.Error, _ = r[1].(string)
			c.rec.Cached(out)
		}
	}
	return nil
}
