package adopt

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/durable"
	"saltclusterd/fsync/apply"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
)

// Leaving is what makes a node a host with a stock salt-master again.
type Leaving struct {
	Node   string           `json:"node"`
	Others []string         `json:"others"` // members that stay; empty: this node is the last, or none
	Checks []doctor.Finding `json:"checks"`
	Remove string           `json:"remove,omitempty"` // the drop-in
	// the name that the drop-in gets when it was written by hand; empty: it is deleted
	Aside string   `json:"aside,omitempty"`
	Next  []string `json:"next"` // to be typed afterwards, in this order

	cacheDir string // of the salt-master; empty: the members that stay use it, too
}

// Failed counts the checks that keep it from being done.
func (l Leaving) Failed() int { return countFailed(l.Checks) }

// disabled ends the name of a drop-in that was switched off: default_include takes *.conf only.
const disabled = ".off"

// Leaving says what is to be done for the salt-master to work without saltclusterd. v compares what the nodes hold;
// nil: it is not known.
func (s *Site) Leaving(v *adminapi.Verification) Leaving {
	l := Leaving{Node: s.Own.ID}
	c := &checks{site: s, node: s.Own.ID}
	c.checkSalt()
	c.checkIdentity("remains the salt-master's key")
	c.checkKeys()
	if s.Status != nil && s.Status.Cluster != nil {
		l.Others = c.stayingMembers()
		c.checkComplete(v)
		c.checkReturns(len(l.Others) == 0)
	} else {
		c.checkNoCluster()
	}
	if s.Own.Cluster.IsolatedFilesystem || len(l.Others) == 0 {
		l.cacheDir = s.Master.CacheDir
	}
	after := s.Master
	if s.DropInText != nil {
		l.Remove = s.DropIn
		if !localmaster.IsDropIn(s.DropInText) {
			l.Aside = freeName(s.DropIn + disabled)
		}
		var err error
		if after, err = localmaster.LoadConfigAfter(s.Master.Path, s.Master.Version,
			localmaster.Changes{s.DropIn: nil}); err != nil {
			c.addFinding("master", doctor.Fail, s.Master.Path, err.Error(), "the salt-master would not start", "")
			after = s.Master
		}
	}
	c.checkRestored(after)
	l.Checks, l.Next = c.found, s.leaveNext(len(l.Others) > 0)
	return l
}

// freeName returns path, or path with the first number from 2 that makes it the name of no file.
func freeName(path string) string {
	name := path
	for n := 2; ; n++ {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
		name = fmt.Sprintf("%s.%d", path, n)
	}
}

// stayingMembers lists the members that stay.
func (c *checks) stayingMembers() (ids []string) {
	st := c.site.Status
	for _, m := range st.Members {
		if !m.Self {
			ids = append(ids, m.ID)
		}
	}
	if len(ids) == 0 {
		c.addOK("cluster", "", "this node is the last of %s: the cluster ends when its saltclusterd stops", st.Cluster.ID)
		return nil
	}
	c.addOK("cluster", "", "this node leaves %s; its minions go to %s", st.Cluster.ID, strings.Join(ids, ", "))
	if !st.Cluster.Quorum.OK {
		c.addFinding("cluster", doctor.Fail, "", "no majority of the cluster can be reached",
			"without a majority this node cannot be removed from the cluster",
			"start the other nodes; saltclusterctl status shows which are down")
	}
	return ids
}

// checkNoCluster is a node whose daemon is down, or in no cluster any more.
func (c *checks) checkNoCluster() {
	switch s := c.site; {
	case s.Status == nil && s.Known:
		c.addFinding("cluster", doctor.Warn, "", "saltclusterd is not running, so this node stays a member of its cluster",
			"the cluster counts it as a failed node",
			"saltclusterctl remove "+c.node+" on another node, if there is one; or start saltclusterd and run leave again")
	case s.Status == nil:
		c.addOK("cluster", "", "this node belongs to no cluster, and saltclusterd is not running")
	default:
		c.addOK("cluster", "", "this node belongs to no cluster")
	}
}

// checkComplete looks whether this master has all that the cluster has.
func (c *checks) checkComplete(v *adminapi.Verification) {
	st := c.site.Status
	if text := adminapi.SyncText(st.Node.Sync); text != "" {
		c.addFinding("data", doctor.Fail, "", "this node is still catching up: "+text, "its salt-master would lack this data",
			"wait until saltclusterctl status shows that it has caught up")
		return
	}
	if v == nil {
		c.addFinding("data", doctor.Warn, "", "the data of the nodes could not be compared",
			"this salt-master may lack the newest keys, caches or jobs", "saltclusterctl verify")
		return
	}
	for _, sec := range v.Sections {
		for _, d := range sec.Differences {
			if mine, has := d.Nodes[c.node]; !has || mine != "" {
				continue
			}
			c.addFinding("data", doctor.Fail, sec.Name, d.Item+" is missing on this node", "this salt-master would lack it",
				"wait a minute and run leave again; saltclusterctl verify lists every difference")
			return
		}
	}
	if !v.Complete() {
		c.addFinding("data", doctor.Warn, "", "not every node answered the comparison", "this salt-master may lack data that only those nodes have",
			"saltclusterctl verify")
		return
	}
	c.addOK("data", "", "this node has all keys, caches and roots")
	if n := c.site.Own.Cluster.JobReplicas; len(st.Members) > n {
		c.addFinding("data", doctor.Warn, "jobs", fmt.Sprintf("each job is on %d of %d nodes", n, len(st.Members)),
			"this salt-master keeps only the jobs that are stored on this node", "")
	}
}

// checkReturns that wait for the salt-master would never reach it. Those that it does not answer go to the members that
// stay.
func (c *checks) checkReturns(last bool) {
	r := c.site.Status.Node.Returns
	if r == nil {
		return
	}
	if last && r.Unanswered > 0 {
		c.addFinding("returns", doctor.Warn, "", countReturns(r.Unanswered, "that the salt-master did not answer is set aside",
			"that the salt-master did not answer are set aside"),
			"no node delivers them later: they stay in state_dir/returns/unanswered",
			"saltclusterctl returns list; then saltclusterctl returns retry, or returns drop ID")
	}
	for _, j := range r.Journals {
		for _, w := range j.Waiting {
			if w.Records > 0 {
				c.addFinding("returns", doctor.Fail, j.Name, countReturns(int(w.Records), "waits for "+w.Consumer, "wait for "+w.Consumer),
					"they would stay here undelivered until saltclusterd runs on this host again",
					"wait a minute and run leave again; saltclusterctl status says why they wait")
			}
		}
	}
}

// countReturns says of one return, or of n, what there is to say.
func countReturns(n int, one, many string) string {
	if n == 1 {
		return "1 return " + one
	}
	return fmt.Sprintf("%d returns %s", n, many)
}

// checkRestored judges the configuration as it will be.
func (c *checks) checkRestored(after *localmaster.Config) {
	if addr, ok := after.InterfaceAddr(); ok && addr.IsLoopback() {
		c.addFinding("master", doctor.Fail, after.SetBy("interface"), "sets interface: "+after.Interface,
			"no minion would reach the salt-master", "remove that line from the file")
		return
	}
	if setsNative(after) {
		c.addFinding("master", doctor.Fail, after.SetBy("cluster_id"),
			"sets cluster_id: the salt-master would go back to Salt's own cluster, with the keys that it had when it left",
			"keys accepted, rejected or deleted since then are not there",
			"remove cluster_id, cluster_peers, cluster_pki_dir and cluster_secret from that file")
		return
	}
	now, then := c.site.Master.Text("keys.cache_driver"), after.Text("keys.cache_driver")
	if now != then && after.Version.Major >= 3008 {
		c.addFinding("master", doctor.Fail, after.SetBy("keys.cache_driver"),
			fmt.Sprintf("its keys are in %s, but it would look for them in %s", now, then),
			"it would have no minion keys", "set 'keys.cache_driver: "+now+"' in that file")
		return
	}
	offered := slices.Sorted(maps.Keys(after.ForMinions()))
	c.addOK("master", "", "without the drop-in, the salt-master listens on %s, ports %d and %d, for minions with %s", after.Interface,
		after.PublishPort, after.RetPort, strings.Join(offered, " and "))
}

// leaveNext are the steps that are left.
func (s *Site) leaveNext(others bool) []string {
	steps := s.stepsToLeave(others)
	for _, dir := range rootDirs(s.Master) {
		area := filepath.Join(dir, apply.InSlot)
		if _, err := os.Lstat(area); err == nil {
			steps = append(steps,
				"rm -r "+area+": otherwise the salt-master serves it to minions; it holds replaced files and, in aside, those that saltclusterctl roots conflicts lists")
		}
	}
	return steps
}

func (s *Site) stepsToLeave(others bool) []string {
	restart := s.restartCommand("restart")
	if others {
		return []string{
			"take this host out of the load balancer: saltclusterctl haproxy on another node prints a configuration without it",
			"systemctl disable --now saltclusterd",
			restart + ": it listens on its own ports again",
		}
	}
	return []string{
		"if minions connect through HAProxy: first install the output of saltclusterctl haproxy --bare there and reload HAProxy, because its checks ask saltclusterd",
		"systemctl disable --now saltclusterd; " + restart +
			": run both without a pause, because minions have no master in between; they then reconnect and sign in again",
		"salt '*' test.ping",
	}
}

// Restore makes the minions' session keys the salt-master's own and removes the drop-in, or puts it aside.
func (l Leaving) Restore() error {
	if l.cacheDir != "" {
		if err := localmaster.ReleaseSessions(l.cacheDir, time.Now()); err != nil {
			return err
		}
	}
	if l.Remove == "" {
		return nil
	}
	if l.Aside != "" { // a link, unlike a rename, does not replace what is there
		if err := os.Link(l.Remove, l.Aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("put the drop-in aside: %w", err)
		}
	}
	if err := os.Remove(l.Remove); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the drop-in: %w", err)
	}
	return durable.SyncDir(filepath.Dir(l.Remove))
}
