package herd

import (
	"path"
	"slices"
	"strings"

	"saltclusterd/sidecar/saltwire"
)

// publication is what a minion reads of a job.
type publication struct {
	jid, fun, user, masterID string
	args                     []any // as they are, for fun_args
	tgt                      string
	list                     map[string]bool // of a list target; nil for others
	tgtType                  string
	complete                 bool // it has all that Minion._target_load wants
}

// parsePublication reads the load of a publication.
func parsePublication(plain []byte) (*publication, error) {
	peek, err := saltwire.PeekPub(plain)
	if err != nil {
		return nil, err
	}
	p := &publication{
		jid: peek.JID, fun: peek.Fun, user: peek.User, masterID: peek.MasterID, tgtType: peek.TgtType,
	}
	if peek.Targets != nil {
		p.list = make(map[string]bool, len(peek.Targets))
		for _, id := range peek.Targets {
			p.list[id] = true
		}
	}
	has := map[string]bool{}
	err = saltwire.WalkMap(plain, func(key, value []byte) error {
		has[string(key)] = true
		switch string(key) {
		case "tgt":
			if b, ok := saltwire.Bytes(value); ok {
				p.tgt = string(b)
			}
		case "arg":
			return saltwire.WalkArray(value, func(v []byte) error {
				if b, ok := saltwire.Bytes(v); ok {
					p.args = append(p.args, string(b))
				}
				return nil
			})
		}
		return nil
	})
	p.complete = has["tgt"] && has["jid"] && has["fun"] && has["arg"]
	return p, err
}

// isFor says whether the job is for the minion (salt/matchers): names only, played minions have neither grains nor
// pillar.
func (p *publication) isFor(id string) bool {
	if p == nil || !p.complete {
		return false
	}
	switch {
	case p.list != nil:
		return p.list[id]
	case p.tgtType == "" || p.tgtType == "glob":
		if p.tgt == "*" {
			return true
		}
		ok, err := path.Match(p.tgt, id)
		return err == nil && ok
	case p.tgtType == "compound":
		return p.tgt == "*" || slices.Contains(strings.Fields(p.tgt), id)
	}
	return false
}

// answer is what the minion returns (salt/minion.py:_thread_return, _prepare_return_pub).
func (p *publication) answer() map[string]any {
	ret := map[string]any{"jid": p.jid, "fun": p.fun, "success": true, "retcode": 0}
	switch p.fun {
	case "test.ping":
		ret["return"] = true
	case "saltutil.find_job": // what it asks for was done at once
		ret["return"] = map[string]any{}
	default:
		ret["return"], ret["success"], ret["retcode"] = "'"+p.fun+"' is not available.", false, 254
		ret["out"] = "nested"
	}
	ret["fun_args"] = p.args
	if p.args == nil {
		ret["fun_args"] = []any{}
	}
	if p.user != "" {
		ret["user"] = p.user
	}
	if p.masterID != "" {
		ret["master_id"] = p.masterID
	}
	return ret
}
