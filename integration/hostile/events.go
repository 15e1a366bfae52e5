package hostile

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/eventbus"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/mirror"
	"saltclusterd/sidecar/saltwire"
)

// masters are globs of tags that masters and clusters tell themselves things with.
var masters = []string{
	"salt/key", "salt/key/*", "salt/auth", "salt/auth/*", "key", "rotate_*", "salt/job/*/new", "salt/job/*/publish",
	"salt/job/*/return",
	"salt/run/*", "salt/wheel/*", "salt/cloud/*", "salt/presence/*", "salt/cluster/*", "cluster/*", "salt/master/*",
	"salt/netapi/*", "salt/stats/*", "salt/batch/*", "salt/event/exit", "resource/refresh/*", "salt/reactors/manage*",
	"*/salt/reactors/manage*", "*.salt/reactors/manage*",
}

// judgeTag says which invariant an event from here breaks by its tag; empty: none.
func (s *scene) judgeTag(tag string) string {
	if rest, ok := strings.CutPrefix(tag, mirror.Prefix); ok { // another master's event, with its node before it
		_, tag, _ = strings.Cut(rest, "/")
	}
	for _, glob := range masters {
		if fnmatch(glob, tag) {
			return "tags"
		}
	}
	about, named := aboutMinion(tag)
	if named && about != s.own {
		for _, o := range s.others {
			if about == o {
				return "names"
			}
		}
	}
	return ""
}

// aboutMinion returns the id in a tag that names one.
func aboutMinion(tag string) (id string, ok bool) {
	parts := strings.Split(tag, "/")
	switch {
	case len(parts) >= 3 && parts[0] == "salt" && (parts[1] == "minion" || parts[1] == "beacon" || parts[1] == "syndic"):
		return parts[2], true
	case len(parts) >= 5 && (parts[0] == "salt" || parts[0] == "syndic") && parts[1] == "job":
		return parts[4], true
	case len(parts) >= 3 && parts[0] == "minion" && parts[1] == "refresh":
		return parts[2], true
	}
	return "", false
}

// fnmatch is path.Match where a star also matches slashes.
func fnmatch(glob, s string) bool {
	ok, _ := path.Match(strings.ReplaceAll(glob, "/", "\x01"), strings.ReplaceAll(s, "/", "\x01"))
	return ok
}

// listen judges what is told on the bus of a node's master until stop is called.
func (w *world) listen(ctx context.Context, n *lab.Node) (stop func(), err error) {
	ver, err := localmaster.ParseVersion(n.Master.Version)
	if err != nil {
		return nil, err
	}
	cfg, err := localmaster.LoadConfig(filepath.Join(n.Master.ConfigDir, "master"), ver)
	if err != nil {
		return nil, err
	}
	bus := eventbus.New(cfg, eventbus.Options{})
	if err := bus.Open(ctx); err != nil {
		return nil, err
	}
	bus.Subscribe(func(tag string, data []byte) { w.heard(n, tag, data) })
	err = lab.Eventually(ctx, time.Minute, "the bus of "+n.Name, func(context.Context) error {
		if !bus.Up() {
			return fmt.Errorf("not connected")
		}
		return nil
	})
	if err != nil {
		_ = bus.Close()
		return nil, err
	}
	return func() { _ = bus.Close() }, nil
}

// heard judges one event. Events without a mark of this run are ignored.
func (w *world) heard(n *lab.Node, tag string, data []byte) {
	evidence := tag + "\n" + string(data)
	if _, ours := marked(w.scene.seed, evidence); !ours {
		return
	}
	if masterFired(tag, data) {
		return
	}
	if broken := w.scene.judgeTag(tag); broken != "" {
		w.book.violated(broken, evidence, "%s: event %q", n.Name, clip(tag))
	}
	if broken := w.scene.judgeData(tag, data); broken != "" {
		w.book.violated("returns", evidence, "%s: %s, by event %q", n.Name, broken, clip(tag))
	}
	w.heardReturn(n, tag, evidence)
}

// judgeData says what is wrong with the data of an event of a job, which whoever waits for that goes by
// (salt/client/__init__.py); empty: nothing.
func (s *scene) judgeData(tag string, data []byte) (broken string) {
	if about, named := aboutMinion(tag); !strings.HasPrefix(tag, "salt/job/") && !strings.HasPrefix(tag, "syndic/job/") {
		_ = saltwire.WalkData(data, func(key, value []byte) {
			if b, _ := saltwire.Bytes(value); named && about == s.own && string(key) == "id" &&
				slices.Contains(s.others, string(b)) {
				broken = "an event of " + string(b) + " is told"
			}
		})
		return broken
	}
	_ = saltwire.WalkData(data, func(key, value []byte) {
		switch name := string(key); name {
		case "minions", "missing", "error":
			broken = name + " of a job are told"
		case "id", "resource_id":
			if b, _ := saltwire.Bytes(value); slices.Contains(s.others, string(b)) {
				broken = "a return of " + string(b) + " is told"
			}
		}
	})
	return broken
}

// heardReturn judges what is told of jobs.
func (w *world) heardReturn(n *lab.Node, tag, evidence string) {
	if rest, ok := strings.CutPrefix(tag, mirror.Prefix); ok { // another master's event, with its node before it
		_, tag, _ = strings.Cut(rest, "/")
	}
	parts := strings.Split(tag, "/")
	// no client waits for a tag that does not look like this
	if len(parts) < 5 || parts[0] != "salt" || parts[1] != "job" || parts[3] != "ret" {
		return
	}
	if id := strings.Join(parts[4:], "/"); id != w.scene.own && !w.scene.ownResource(evidence, id) {
		w.book.violated("returns", evidence, "%s: a return of %q is told", n.Name, clip(id))
	}
	if strings.HasPrefix(parts[2], unpublished) && w.scene.mustBeKnown(evidence) {
		w.book.violated("jobs", evidence, "%s: a return of job %s is told", n.Name, clip(parts[2]))
	}
}

// mustBeKnown says whether the node that a return came to was to know that its job was never published: it is not one
// of the minion's own schedule, nor of another node, and its id is as masters make them.
func (s *scene) mustBeKnown(evidence string) bool {
	n, ok := marked(s.seed, evidence)
	if !ok && jid.MatchString(evidence) { // it ends with the number of the request (madeUpJid)
		_, err := fmt.Sscanf(strings.TrimLeft(evidence[14:], "0"), "%d", &n)
		ok = err == nil
	}
	if !ok {
		return true
	}
	r := s.request(n)
	at := slices.IndexFunc(r.fields, func(e entry) bool { return string(e.key) == string(text("jid")) })
	if r.Cmd != "_return" || r.names("schedule") || s.ofAnotherNode(r) || at < 0 {
		return false
	}
	own := strings.TrimPrefix(string(r.fields[at].value), "\xb4")
	// else it is of another seed on the same cluster
	return jid.MatchString(own) && (own == evidence || !jid.MatchString(evidence))
}

// ofAnotherNode says whether a return says that its job is a node's: which one it came to is not known here.
func (s *scene) ofAnotherNode(r *Request) bool {
	return slices.ContainsFunc(r.fields, func(e entry) bool {
		id, _ := saltwire.Bytes(e.value)
		return string(e.key) == string(text("master_id")) && slices.Contains(s.nodes, string(id))
	})
}

// ownResource says whether a request was a return of something that the minion manages: neither a minion nor a master.
func (s *scene) ownResource(evidence, id string) bool {
	n, ok := marked(s.seed, evidence)
	return ok && s.request(n).names("resource_id") && !slices.Contains(s.others, id) &&
		!slices.Contains(s.nodes, strings.TrimSuffix(id, "_master")) &&
		!strings.Contains("/"+id+"/", "/../")
}

// masterFired tells the events that a master fires itself about a job which a minion may publish, and which show what
// was asked for.
func masterFired(tag string, data []byte) bool {
	return (fnmatch("salt/job/*/new", tag) || fnmatch("salt/job/*/publish", tag)) &&
		strings.Contains(string(data), "tgt_type") &&
		!strings.Contains(string(data), "_minion_event")
}

func clip(s string) string { return s[:min(len(s), 120)] }
