package router

import (
	"strings"

	"saltclusterd/sidecar/saltwire"
)

// Class is the group of functions that a master looks a command up in.
type Class uint8

// The classes of salt/master.py.
const (
	Clear Class = iota + 1 // ClearFuncs: the load is not encrypted
	AES                    // AESFuncs: the load is sealed with the minion's session key
)

// Route is the rule for a command.
type Route uint8

// The rules.
const (
	SignIn      Route = iota + 1 // answered by sidecar/signin
	Admin                        // refused from the network unless an allow-list says otherwise (sidecar/guard)
	Local                        // any master will do: this node's, else the least loaded
	ByJID                        // the node that published the job
	ByPublisher                  // the same; when it is not known or gone, whoever has the job
	ByMinion                     // the ring's owner of the minion id
	ByJob                        // ByJID when it is part of a job that a node is known for, ByMinion otherwise
	ByOwner                      // ByMinion when every node gets what that one writes; otherwise every master writes it
	ByCache                      // ByMinion while a master caches the answers, Local otherwise
	AllNewest                    // every master whose version has the command keeps what is written, the local one answers
)

// Command is what there is to know about one command.
type Command struct {
	Name  string
	Class Class
	Route Route
	Since int // first major version that has it; zero: all supported ones
	// Repeat says that sending it twice does no more than sending it once, so that a request which may or may not have
	// been carried out can go to another master.
	Repeat bool
	Note   string // what it touches, or why the rule is what it is
}

// Commands lists every command of every supported version. Names, classes and versions are checked against installed
// Salts by TestCommandsOfInstalledSalt.
var Commands = []Command{
	{"_auth", Clear, SignIn, 0, true, "channel/server.py intercepts it"},
	{"ping", Clear, Local, 0, true, "echoes its load"},
	{"publish", Clear, Admin, 0, false, "starts a job"},
	{"runner", Clear, Admin, 0, false, "runs on the master"},
	{"wheel", Clear, Admin, 0, false, "administers the master"},
	{"mk_token", Clear, Admin, 0, false, "creates an eauth token"},
	{"get_token", Clear, Admin, 0, true, "reads an eauth token"},

	{"_return", AES, ByJID, 0, true,
		"job cache and salt/job/<jid>/ret/<id>; without a jid of a job (schedule, salt-call) by minion"},
	{"_syndic_return", AES, ByJID, 0, true, "the same for a list of returns"},
	{"pub_ret", AES, ByPublisher, 0, true, "reads the job cache, and publish_auth of the master that ran minion_pub"},
	{"minion_pub", AES, Local, 0, false, "the master that runs it becomes the publisher"},
	{"minion_publish", AES, Local, 0, false, "as minion_pub, and waits for the returns"},
	{"minion_runner", AES, Local, 0, false, "peer_run; may run long"},

	{"_minion_event", AES, ByJob, 0, false,
		"fires on one bus only, because reactors act on it; progress of a job where its CLI listens"},
	{"revoke_auth", AES, ByMinion, 0, true, "deletes the minion's key, which then travels through consensus"},

	{"_mine", AES, ByOwner, 0, true, "reads and writes the minion's mine: one node after the other would lose entries"},
	{"_mine_delete", AES, ByOwner, 0, true, "as _mine"},
	{"_mine_flush", AES, ByOwner, 0, true, "as _mine"},
	{"_mine_get", AES, Local, 0, true, "reads mine, keys and grains, which all nodes have"},
	{"_register_resources", AES, AllNewest, 3008, true, "resource index of the minion; older masters answer {}"},

	{"_pillar", AES, ByCache, 0, true,
		"renders the pillar, stores the minion's grains; with pillar_cache only that master clears what it has cached"},
	{"_master_opts", AES, Local, 0, true, ""},
	{"_master_tops", AES, Local, 0, true, ""},
	{"verify_minion", AES, Local, 0, true, "checks a token with the minion's key"},

	{"_serve_file", AES, Local, 0, true,
		"file server; all nodes hold the same roots, what a minion has pushed is where _file_recv put it"},
	{"_file_find", AES, Local, 0, true, "file server"},
	{"_file_hash", AES, Local, 0, true, "file server"},
	{"_file_hash_and_stat", AES, Local, 0, true, "file server"},
	{"_file_list", AES, Local, 0, true, "file server"},
	{"_file_list_emptydirs", AES, Local, 0, true, "file server"},
	{"_dir_list", AES, Local, 0, true, "file server"},
	{"_symlink_list", AES, Local, 0, true, "file server"},
	{"_file_envs", AES, Local, 0, true, "file server"},
	{"_file_recv", AES, ByMinion, 0, false, "appends chunk by chunk to one file, so all chunks go to one node"},
}

var byName = func() map[string]*Command {
	m := make(map[string]*Command, len(Commands))
	for i := range Commands {
		m[Commands[i].Name] = &Commands[i]
	}
	return m
}()

// Lookup finds a command of a class.
func Lookup(class Class, name string) (Command, bool) {
	c := byName[name]
	if c == nil || c.Class != class {
		return Command{}, false
	}
	return *c, true
}

// IsReturn says whether a command brings returns of a job, which a node can take without its master.
func IsReturn(name string) bool { return name == "_return" || name == "_syndic_return" }

// IsEvent says whether a command brings events, which a node can fire without its master's Python.
func IsEvent(name string) bool { return name == "_minion_event" }

// Waits says whether a request keeps a worker of the master's for as long as who asks likes: it waits for minions or a
// runner, writes a record for each of as many resources as a minion names (2 ms each), or looks for minions by a
// regular expression, which Python may take forever to match.
func Waits(p *saltwire.Peek) bool {
	switch p.Cmd {
	case "minion_publish", "minion_runner", "_register_resources":
		return true
	case "_mine_get", "minion_pub":
		return isExpression(p.Raw.TgtType) || isExpression(p.Raw.ExprForm)
	}
	return false
}

// Long says whether a master answers a command by running code of the site's own (pillars, runners, file servers) or
// waits for minions, so that the answer may take as long as its minion waits without anything being wrong.
func Long(name string) bool {
	switch name {
	case "_pillar", "_master_tops", "minion_publish", "minion_runner":
		return true
	}
	return ReadsRoots(name)
}

// isExpression says whether minions that are looked for that way may be by a regular expression.
func isExpression(by saltwire.Value) bool {
	b, _ := by.Text()
	switch strings.ToLower(string(b)) {
	case "pcre", "grain_pcre", "pillar_pcre", "compound", "compound_pillar_exact":
		return true
	}
	return false
}

// Nameless says whether Salt's minions ask it without an id where the payload version leaves that out (before 3): the
// file client's requests, whose answers are the same for every minion.
func Nameless(name string) bool {
	switch name {
	case "_serve_file", "_file_find", "_file_hash", "_file_hash_and_stat", "_file_list", "_file_list_emptydirs",
		"_dir_list",
		"_symlink_list", "_file_envs", "_master_opts":
		return true
	}
	return false
}

// ReadsRoots says whether a command reads below file_roots or pillar_roots.
func ReadsRoots(name string) bool {
	switch name {
	case "_pillar", "_master_tops", "_serve_file", "_file_find", "_file_hash", "_file_hash_and_stat", "_file_list",
		"_file_list_emptydirs", "_dir_list", "_symlink_list", "_file_envs":
		return true
	}
	return false
}

// Label is name as a metric label: names that no Salt has are all "unknown", for minions choose them.
func Label(name string) string {
	if c := byName[name]; c != nil {
		return c.Name
	}
	return "unknown"
}
