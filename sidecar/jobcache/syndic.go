package jobcache

import "saltclusterd/sidecar/saltvalue"

// planSyndic is salt/master.py:AESFuncs._syndic_return: the returns of a syndic's minions, one after the other.
func (p *planner) planSyndic(d fields) error {
	loads := []fields{d}
	if raw, ok := d.Get("load"); ok && saltvalue.IsList(raw) {
		list, _ := saltvalue.ParseList(raw)
		loads = loads[:0]
		for _, one := range list {
			f, ok := saltvalue.ParseFields(one)
			if !ok {
				return needs("a syndic's load that is not a map")
			}
			loads = append(loads, f)
		}
	}
	for _, load := range loads {
		if err := p.syndicLoad(load); err != nil {
			return err
		}
	}
	p.plan.Reply = rawNil
	return nil
}

func (p *planner) syndicLoad(load fields) error {
	if !load.Has("return") || !load.Has("jid") || !load.Has("id") {
		return nil
	}
	rawJID, _ := load.Get("jid")
	jid, ok := saltvalue.Text(rawJID)
	if !ok || jid == "" || jid == "req" {
		return needs("a syndic's load without a usable jid")
	}
	if published, ok := load.Get("load"); ok && saltvalue.Truth(published) {
		f, ok := saltvalue.ParseFields(published)
		if !ok {
			return needs("a syndic's load whose job is not a map")
		}
		minions, err := p.findTargets(f)
		if err != nil {
			return err
		}
		if err := p.addJob(Job{JID: jid, Load: published, Replace: true, Minions: minions}); err != nil {
			return err
		}
	}
	rawID, _ := load.Get("id")
	id, ok := saltvalue.Text(rawID)
	if !ok || id == "" || len(id) > 255 {
		return needs("a syndic's load without a usable id")
	}
	if validID(id) {
		p.plan.Syndics = append(p.plan.Syndics, id)
	}
	rawReturns, _ := load.Get("return")
	returns, ok := saltvalue.ParseFields(rawReturns)
	if !ok {
		return needs("a syndic's load whose return is not a map")
	}
	for _, r := range returns {
		one, err := syndicReturn(load, r)
		if err != nil {
			return err
		}
		if err := p.planReturn(one); err != nil {
			return err
		}
	}
	return nil
}

// syndicReturn makes a minion's return from its part of the syndic's.
func syndicReturn(load fields, r saltvalue.Field) (fields, error) {
	item, ok := saltvalue.ParseFields(r.Val)
	if !ok {
		return nil, needs("a syndic's return that is not a map")
	}
	if load.Has("sig") {
		return nil, needs("a signed return in a syndic's load")
	}
	jid, _ := load.Get("jid")
	one := fields{{Key: rawText("jid"), Val: jid}, {Key: rawText("id"), Val: r.Key}}
	for _, f := range item {
		name, ok := saltvalue.Text(f.Key)
		if !ok {
			return nil, needs("a syndic's return with odd keys")
		}
		if name == "sig" {
			return nil, needs("a signed return in a syndic's load")
		}
		one = one.Set(name, f.Val)
	}
	for _, name := range []string{"master_id", "fun", "fun_args", "out"} {
		if v, ok := load.Get(name); ok {
			one = one.Set(name, v)
		}
	}
	if now, _ := one.Get("jid"); len(now) > 0 {
		if name, _ := saltvalue.Text(now); name == "req" {
			return nil, needs("a syndic's return without a job")
		}
	}
	return one, nil
}
