package jobcache

import (
	"bytes"
	"errors"
	"strings"

	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

func rawText(s string) []byte { return saltwire.AppendStr(nil, s) }

// ret is salt/master.py:AESFuncs._return with salt/utils/job.py:store_job.
func (p *planner) ret(d fields) error {
	ok, err := p.signature(&d)
	if err != nil || !ok {
		p.plan.Reply = rawFalse
		return err
	}
	if p.c.major >= 3008 && d.has("resource_id") {
		var id []byte
		d, id = d.drop("resource_id")
		d = d.set("id", id)
	}
	if !d.has("return") || !d.has("jid") || !d.has("id") {
		return nil
	}
	rawID, _ := d.get("id")
	id, isText := text(rawID)
	if !isText || !validID(id) {
		return nil
	}
	if err := usableID(id); err != nil {
		return err
	}
	job := Job{Minion: id}
	if d, err = p.job(d, &job); err != nil {
		return err
	}
	return p.store(d, job)
}

// signature tells whether a load may pass (minion_sign_messages). What is signed is the load as the master serialises it
// again, without nonce, tok and sig; afterwards sig stands last.
func (p *planner) signature(d *fields) (bool, error) {
	if !d.has("sig") {
		return !p.c.requireSig, nil
	}
	if p.c.sigAlgo == "" {
		return false, needs("a signed return, and the master has no option signing_algorithm")
	}
	rest, sig := d.drop("sig")
	*d = rest
	id, _ := d.get("id")
	name, _ := text(id)
	pub, ok := p.c.cfg.Keys.Accepted(name)
	if !ok {
		return false, needs("a signed return for an id without accepted key")
	}
	key, err := saltcrypt.ParsePublicKey(pub)
	if err != nil {
		return false, needs("a signed return of a minion whose key is not usable here")
	}
	raw, ok := saltwire.Bytes(sig)
	if !ok {
		return false, needs("a signature that is neither text nor bytes")
	}
	signed := d.raw()
	if bytes.Contains(signed, datetimeHead) {
		return false, needs("a signed return with a date, which the master cannot serialise again")
	}
	err = key.Verify(p.c.sigAlgo, signed, raw)
	if errors.Is(err, saltcrypt.ErrAlgorithm) {
		return false, needs("a signed return, and the master's signing_algorithm is none that Salt has")
	}
	*d = d.set("sig", sig)
	return err == nil || !p.c.dropUnsigned, nil
}

// validID is salt/utils/verify.py:valid_id: a name directly inside a directory.
func validID(id string) bool {
	return id != "" && id != "." && id != ".." && !strings.ContainsAny(id, "/\\\x00")
}

// usableID keeps away from names that mean something else in a job's directory.
func usableID(id string) error {
	switch {
	case id[0] == '.', id == "jid", id == "nocache", id == "endtime":
		return needs("the minion's id %q is a name of the job cache's own", id)
	case len(id) > 255:
		return needs("the minion's id is too long for a file")
	}
	return nil
}

// job finds the job of a return; without one it is given the jid that was assigned, and its load is kept as the job's.
func (p *planner) job(d fields, job *Job) (fields, error) {
	raw, _ := d.get("jid")
	jid, ok := text(raw)
	if !ok || jid == "" {
		return d, needs("a jid that is not text")
	}
	if jid != "req" {
		is, sure := isJID(jid)
		if !sure {
			return d, needs("a jid that only Python can read")
		}
		job.JID, job.Known = jid, is
		return d, nil
	}
	if is, _ := isJID(p.facts.JID); !is {
		return d, needs("no job id was assigned")
	}
	arg, ok := d.get("arg")
	if !ok {
		if arg, ok = d.get("fun_args"); !ok {
			arg = saltwire.AppendArrayHeader(nil, 0)
		}
	}
	id := rawText(job.Minion)
	d = d.set("arg", arg).set("tgt_type", rawText("glob")).set("tgt", id)
	noCache, _ := d.get("nocache")
	d = d.set("jid", rawText(p.facts.JID))
	job.JID, job.Known, job.NoCache = p.facts.JID, true, truth(noCache)
	job.Load, job.Replace = d.raw(), true
	minions, err := p.targets(d)
	job.Minions = minions
	return d, err
}

// store is the rest of salt/utils/job.py:_store_job from the event on.
func (p *planner) store(d fields, job Job) error {
	d = d.set("_stamp", p.stamp)
	full := d.raw()
	if err := p.fire("salt/job/"+job.JID+"/ret/"+job.Minion, full); err != nil {
		return err
	}
	changed, err := p.failures(&d, job)
	if err != nil {
		return err
	}
	if job.JID == "nocache" {
		return nil
	}
	if changed, err = nameFun(&d, changed); err != nil {
		return err
	}
	if job.Load == nil {
		if changed {
			full = d.raw()
		}
		job.Load = full
		if job.Minions, err = p.targets(d); err != nil {
			return err
		}
	}
	var kept fields
	for _, name := range []string{"return", "retcode", "success"} {
		if v, ok := d.get(name); ok {
			kept = append(kept, field{rawText(name), v})
		}
	}
	job.Return = kept.raw()
	if out, ok := d.get("out"); ok {
		job.Out = out
	}
	if p.c.endTimes {
		job.EndTime = endtime(p.facts.Received)
	}
	return p.add(job)
}

// nameFun takes fun and user from the return where the load has no fun.
func nameFun(d *fields, changed bool) (bool, error) {
	ret, _ := d.get("return")
	if d.has("fun") || !truth(ret) {
		return changed, nil
	}
	in, ok := parseFields(ret)
	if !ok {
		return false, needs("a return without fun that is not a map")
	}
	for _, name := range []string{"fun", "user"} {
		if v, ok := in.get(name); ok {
			*d, changed = d.set(name, v), true
		}
	}
	return changed, nil
}
