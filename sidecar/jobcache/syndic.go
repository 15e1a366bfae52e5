package jobcache

// syndic is salt/master.py:AESFuncs._syndic_return: the returns of a syndic's minions, one after the other.
func (p *planner) syndic(d fields) error {
	loads := []fields{d}
	if raw, ok := d.get("load"); ok && isList(raw) {
		list, _ := parseList(raw)
		loads = loads[:0]
		for _, one := range list {
			f, ok := parseFields(one)
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
	if !load.has("return") || !load.has("jid") || !load.has("id") {
		return nil
	}
	rawJID, _ := load.get("jid")
	jid, ok := text(rawJID)
	if !ok || jid == "" || jid == "req" {
		return needs("a syndic's load without a usable jid")
	}
	if published, ok := load.get("load"); ok && truth(published) {
		f, ok := parseFields(published)
		if !ok {
			return needs("a syndic's load whose job is not a map")
		}
		minions, err := p.targets(f)
		if err != nil {
			return err
		}
		if err := p.add(Job{JID: jid, Load: published, Replace: true, Minions: minions}); err != nil {
			return err
		}
	}
	rawID, _ := load.get("id")
	id, ok := text(rawID)
	if !ok || id == "" || len(id) > 255 {
		return needs("a syndic's load without a usable id")
	}
	if validID(id) {
		p.plan.Syndics = append(p.plan.Syndics, id)
	}
	rawReturns, _ := load.get("return")
	returns, ok := parseFields(rawReturns)
	if !ok {
		return needs("a syndic's load whose return is not a map")
	}
	for _, r := range returns {
		one, err := syndicReturn(load, r)
		if err != nil {
			return err
		}
		if err := p.ret(one); err != nil {
			return err
		}
	}
	return nil
}

// syndicReturn makes a minion's return from its part of the syndic's.
func syndicReturn(load fields, r field) (fields, error) {
	item, ok := parseFields(r.val)
	if !ok {
		return nil, needs("a syndic's return that is not a map")
	}
	if load.has("sig") {
		return nil, needs("a signed return in a syndic's load")
	}
	jid, _ := load.get("jid")
	one := fields{{rawText("jid"), jid}, {rawText("id"), r.key}}
	for _, f := range item {
		name, ok := text(f.key)
		if !ok {
			return nil, needs("a syndic's return with odd keys")
		}
		if name == "sig" {
			return nil, needs("a signed return in a syndic's load")
		}
		one = one.set(name, f.val)
	}
	for _, name := range []string{"master_id", "fun", "fun_args", "out"} {
		if v, ok := load.get(name); ok {
			one = one.set(name, v)
		}
	}
	if now, _ := one.get("jid"); len(now) > 0 {
		if name, _ := text(now); name == "req" {
			return nil, needs("a syndic's return without a job")
		}
	}
	return one, nil
}
