package jobcache

import (
	"errors"
	"strings"

	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
)

func rawText(s string) []byte { return saltwire.AppendStr(nil, s) }

// planReturn is salt/master.py:AESFuncs._return with salt/utils/job.py:store_job.
func (p *planner) planReturn(d fields) error {
	ok, err := p.checkSignature(&d)
	if err != nil || !ok {
		p.plan.Reply = rawFalse
		return err
	}
	if p.c.major >= 3008 && d.Has("resource_id") {
		var id []byte
		d, id = d.Drop("resource_id")
		d = d.Set("id", id)
	}
	if !d.Has("return") || !d.Has("jid") || !d.Has("id") {
		return nil
	}
	rawID, _ := d.Get("id")
	id, isText := saltvalue.Text(rawID)
	if !isText || !validID(id) {
		return nil
	}
	if err := usableID(id); err != nil {
		return err
	}
	job := Job{Minion: id}
	if d, err = p.planJob(d, &job); err != nil {
		return err
	}
	return p.planStore(d, job)
}

// signedBy is the algorithm of signed returns, empty when the master raises an error for each: late releases without
// the option signing_algorithm, and 3008.0.
func signedBy(v localmaster.Version, o Options) string {
	switch {
	case v.AsksSigningAlgorithm():
		return o.Text("signing_algorithm")
	case v.Major < 3008:
		return saltcrypt.PKCS1v15SHA1
	}
	return ""
}

// checkSignature tells whether a load may pass (minion_sign_messages). The signature is over the load as the master
// serialises it again, without nonce, tok and sig; afterwards sig stands last.
func (p *planner) checkSignature(d *fields) (bool, error) {
	id, _ := d.Get("id")
	name, _ := saltvalue.Text(id)
	if !d.Has("sig") {
		if p.c.requireSig {
			p.c.cfg.Log.Unsigned(name)
		}
		return !p.c.requireSig, nil
	}
	if p.c.sigAlgo == "" {
		return false, needs("a signed return, for which the master has no algorithm")
	}
	rest, sig := d.Drop("sig")
	*d = rest
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
	signed := d.Raw()
	if saltvalue.MayHaveDate(signed) {
		return false, needs("a signed return with a date, which the master cannot serialise again")
	}
	err = key.Verify(p.c.sigAlgo, signed, raw)
	if errors.Is(err, saltcrypt.ErrAlgorithm) {
		return false, needs("a signed return, and the master's signing_algorithm is none that Salt has")
	}
	*d = d.Set("sig", sig)
	if err != nil {
		p.c.cfg.Log.Forged(name, p.c.dropUnsigned)
	}
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
		return needs("the minion's id %.60q is a name of the job cache's own", id)
	case len(id) > 255:
		return needs("the minion's id is too long for a file")
	}
	return nil
}

// planJob finds the job of a return; without one it is given the jid that was assigned, and its load is kept as the
// job's.
func (p *planner) planJob(d fields, job *Job) (fields, error) {
	raw, _ := d.Get("jid")
	jid, ok := saltvalue.Text(raw)
	if !ok || jid == "" {
		return d, needs("a jid that is not text")
	}
	if jid != "req" {
		if cut, ok := saltwire.CutJID(p.facts.JID); ok && cut == jid { // its minion queued the job, and cut its id
			jid = p.facts.JID
			d = d.Set("jid", rawText(jid))
		}
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
	arg, ok := d.Get("arg")
	if !ok {
		if arg, ok = d.Get("fun_args"); !ok {
			arg = saltwire.AppendArrayHeader(nil, 0)
		}
	}
	id := rawText(job.Minion)
	d = d.Set("arg", arg).Set("tgt_type", rawText("glob")).Set("tgt", id)
	noCache, _ := d.Get("nocache")
	d = d.Set("jid", rawText(p.facts.JID))
	job.JID, job.Known, job.NoCache = p.facts.JID, true, saltvalue.Truth(noCache)
	job.Load, job.Replace = d.Raw(), true
	minions, err := p.findTargets(d)
	job.Minions = minions
	return d, err
}

// planStore is the rest of salt/utils/job.py:_store_job from the event on.
func (p *planner) planStore(d fields, job Job) error {
	d = d.Set("_stamp", p.stamp)
	full := d.Raw()
	if err := p.planFire("salt/job/"+job.JID+"/ret/"+job.Minion, full); err != nil {
		return err
	}
	changed, err := p.planFailures(&d, job)
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
			full = d.Raw()
		}
		job.Load = full
		if job.Minions, err = p.findTargets(d); err != nil {
			return err
		}
	}
	var kept fields
	for _, name := range []string{"return", "retcode", "success"} {
		if v, ok := d.Get(name); ok {
			kept = append(kept, saltvalue.Field{Key: rawText(name), Val: v})
		}
	}
	job.Return = kept.Raw()
	if out, ok := d.Get("out"); ok {
		job.Out = out
	}
	if p.c.endTimes {
		job.EndTime = formatEndtime(p.facts.Received)
	}
	return p.addJob(job)
}

// nameFun takes fun and user from the return where the load has no fun.
func nameFun(d *fields, changed bool) (bool, error) {
	ret, _ := d.Get("return")
	if d.Has("fun") || !saltvalue.Truth(ret) {
		return changed, nil
	}
	in, ok := saltvalue.ParseFields(ret)
	if !ok {
		return false, needs("a return without fun that is not a map")
	}
	for _, name := range []string{"fun", "user"} {
		if v, ok := in.Get(name); ok {
			*d, changed = d.Set(name, v), true
		}
	}
	return changed, nil
}
