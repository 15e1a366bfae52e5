package adopt

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
)

// Plan is what makes the host a node.
type Plan struct {
	Node      string           `json:"node"`
	ClusterID string           `json:"cluster_id"`
	Checks    []doctor.Finding `json:"checks"`
	Files     []File           `json:"files"` // to be written, in this order; empty: all are there
	Next      []string         `json:"next"`  // to be typed afterwards, in this order; empty: nothing is left
	Steps     []Step           `json:"-"`     // of Next, all but the check at the end
}

// StepKind is what a step does.
type StepKind int

// The kinds of steps, in the order in which they are taken.
const (
	OpenRoot StepKind = iota
	StartDaemon
	UpgradeDaemon
	Bootstrap
	Join
	RestartMaster
)

// Step is one that is left once the files are written.
type Step struct {
	Kind    StepKind
	Command string // as it is typed
	Why     string
	Token   bool // of a Join: neither a secret nor a token is configured
	// Args is the command of OpenRoot, and master_restart_command of RestartMaster; nil: the service manager restarts it.
	Args []string
}

// File is one that is to be written.
type File struct {
	Path   string `json:"path"`
	What   string `json:"what"`             // in a few words
	Text   string `json:"text,omitempty"`   // empty: it is a secret
	Secret bool   `json:"secret,omitempty"` // only the master's group may read it

	master bool // the salt-master reads it

	text  []byte
	mode  fs.FileMode
	owner localmaster.Owner
	act   func() error // what is done instead of writing text
}

// Failed counts the checks that keep it from being done.
func (p Plan) Failed() int { return countFailed(p.Checks) }

func countFailed(checks []doctor.Finding) (n int) {
	for _, f := range checks {
		if f.Level == doctor.Fail {
			n++
		}
	}
	return n
}

const defaultCluster = "salt"

// Plan says what is to be done on a host that was looked at.
func (s *Site) Plan() Plan {
	p := Plan{Node: cmp.Or(s.Asked.Node, s.Own.ID), ClusterID: cmp.Or(s.Asked.ClusterID, s.Own.Cluster.ID, defaultCluster),
		Files: []File{}, Next: []string{}}
	c := &checks{site: s, node: p.Node, cluster: p.ClusterID}
	c.checkSalt()
	c.checkOwn()
	after, dropIn := c.dropIn()
	if s.isJoining() {
		c.checkIdentity(s.joinsWith())
	} else {
		c.checkIdentity("becomes the cluster's key, so minions that trust this master need no change")
	}
	for _, look := range []func(){c.checkKeys, c.leavesNative, c.checkBroughtKeys, c.checkRoots, c.checkPorts,
		c.checkUntilRestart, c.checkOtherPorts, c.checkMinions,
		c.checkTransports, c.checkUnusual, c.checkMember} {
		look()
	}
	c.checkMaster(after)
	p.Checks = c.found
	if p.Failed() > 0 {
		return p
	}
	p.Files = append(append(append(p.Files, s.ownFiles(p.Node, p.ClusterID)...), s.nativeFiles(c.moved)...), dropIn...)
	p.Steps = append(c.rootSteps, s.nextSteps(len(p.Files) > 0, len(dropIn) > 0)...)
	for _, step := range p.Steps {
		p.Next = append(p.Next, step.Command+": "+step.Why)
	}
	if len(p.Next) > 0 {
		p.Next = append(p.Next, "saltclusterctl status --check")
	}
	return p
}

// nextSteps are the steps that are left, when any file has changed, and when the drop-in has.
func (s *Site) nextSteps(changed, dropIn bool) (steps []Step) {
	add := func(kind StepKind, command, why string) {
		steps = append(steps, Step{Kind: kind, Command: command, Why: why})
	}
	switch {
	case s.Status == nil:
		add(StartDaemon, "systemctl enable --now saltclusterd", "it starts and waits; minions stay connected to the salt-master")
	case changed:
		add(UpgradeDaemon, "saltclusterctl upgrade", "the running saltclusterd applies the changed files")
	}
	switch {
	case s.isMember():
	case s.isJoining():
		steps = append(steps, s.joinStep())
	default:
		add(Bootstrap, "saltclusterctl bootstrap", "creates the cluster with the salt-master's key and its minion keys")
	}
	restart := Step{Kind: RestartMaster, Command: s.restartCommand("restart"), Args: s.Own.Salt.RestartCommand}
	switch held, runs := s.masterListens(); {
	case held:
		restart.Why = "it frees its ports and saltclusterd takes them; minions reconnect once"
	case !runs:
		restart.Command, restart.Why = s.restartCommand("start"), "it is not running"
	case dropIn:
		restart.Why = "it reads the drop-in"
	default:
		return steps
	}
	return append(steps, restart)
}

// isMember says whether this node belongs to a cluster.
func (s *Site) isMember() bool {
	if s.Status == nil {
		return s.Known
	}
	return s.Status.Cluster != nil
}

// masterListens says whether the master holds what saltclusterd is to listen on, and whether it listens at all.
func (s *Site) masterListens() (held, runs bool) {
	for _, l := range s.Listeners {
		if s.isOurs(l) || isLoadBalancer(l) ||
			int(l.Addr.Port()) != s.Master.PublishPort && int(l.Addr.Port()) != s.Master.RetPort {
			continue
		}
		runs = true
		held = held || !l.Addr.Addr().IsLoopback()
	}
	return held, runs
}

// isOurs says whether saltclusterd listens there.
func (s *Site) isOurs(l doctor.Listener) bool {
	if strings.HasPrefix(l.Process, "saltclusterd ") {
		return true
	}
	return s.Status != nil && slices.ContainsFunc(s.Status.Node.Edges,
		func(e adminapi.Edge) bool { return slices.Contains(e.Addresses, l.Addr.String()) })
}

// restartCommand is how the master is restarted here.
func (s *Site) restartCommand(how string) string {
	if cmd := s.Own.Salt.RestartCommand; len(cmd) > 0 {
		return strings.Join(cmd, " ")
	}
	return fmt.Sprintf("systemctl %s salt-master", how)
}
