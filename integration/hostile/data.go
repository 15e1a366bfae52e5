package hostile

import (
	"math"
	"strings"

	"saltclusterd/sidecar/saltwire"
)

// data is what a minion may say about anything: it always holds the mark, and often what masters would act on.
func (d *dice) data() packed {
	base := []entry{pair("hostile", text(d.mark()))}
	switch d.IntN(8) {
	case 5:
		base = append(base, pair("id", text(d.other())), pair("return", text(d.mark())), pair("resource_id", text(d.id())),
			pair("jid", d.aJid()))
	case 6:
		base = append(base, pair("__peer_id", text(d.node())), pair("act", text("accept")),
			pair("id", text(d.who.own+"-peer")), pair("pub", text(d.who.pub)),
			pair("event", text("*")), pair("reactors", list(text(d.path()))))
	case 7:
		base = append(base, pair(one(d, "error", "missing", "syndic", "minions"), list(text(d.other()))),
			entry{number(7), null})
	case 0:
		base = append(base, pair("id", text(d.other())), pair("act", text("accept")), pair("result", flag(true)))
	case 1:
		base = append(base, pair("minions", list(text(d.other()), text(d.mark()))), pair("jid", d.aJid()))
	case 2:
		base = append(base, pair("rotate_aes_key", flag(true)), pair("aes", text(d.mark())), pair("peer_id", text(d.node())))
	case 3:
		base = append(base, pair("data", d.odd()), pair("_stamp", d.odd()), pair("cmd", text("_return")),
			pair("return", d.odd()))
	case 4:
		base = append(base, entry{d.odd(), d.odd()})
	}
	return dict(base...)
}

// asExtension makes of text what Python gets as the same text; of anything else something odd.
func (d *dice) asExtension(value packed) packed {
	b, ok := saltwire.Bytes(value)
	if !ok || len(b) > 255 {
		return d.odd()
	}
	return extension(one(d, byte(d.IntN(128)), 0, 1, 0xff), string(b))
}

func (d *dice) events() packed {
	var all []packed
	for range 1 + d.IntN(4) {
		switch d.IntN(8) {
		case 0:
			all = append(all, dict(pair("tag", text(d.tag()))))
		case 3:
			all = append(all, dict(pair("tag", d.tagInParts()), pair("data", d.data())))
		case 1:
			all = append(all, d.odd())
		case 2:
			all = append(all, dict(pair("tag", one(d, d.odd(), d.asExtension(text(d.tag())))), pair("data", d.data())))
		default:
			all = append(all, dict(pair("tag", text(d.tag())), pair("data", d.data()), pair("id", text(d.id()))))
		}
	}
	return list(all...)
}

// tagInParts is a tag as a list, of which some masters make one.
func (d *dice) tagInParts() packed {
	var parts []packed
	for p := range strings.SplitSeq(strings.TrimPrefix(d.tag(), "salt/"), "/") {
		if parts = append(parts, text(p)); len(parts) > 40 {
			break
		}
	}
	return list(parts...)
}

// returns are those of a syndic: of other minions, by their ids.
func (d *dice) returns() packed {
	of := func(id string) entry {
		return pair(id, dict(pair("return", text(d.mark())), pair("retcode", number(0)), pair("success", flag(true)),
			pair("hostile", text(d.mark()))))
	}
	within := func(name string, v packed) entry {
		return pair("new-"+d.mark(), dict(pair("return", text(d.mark())), pair(name, v), pair("hostile", text(d.mark()))))
	}
	switch d.IntN(4) {
	case 0:
		return dict(within(one(d, "id", "resource_id", "jid"), text(d.other())))
	case 1:
		return dict(pair("new-"+d.mark(), list(list(text("id"), text(d.other())), list(text("return"), text(d.mark())))))
	}
	return dict(of(d.other()), of(d.id()), of("new-"+d.mark()))
}

// failedStates are states with names of which masters make tags: of the first part and the last one, with a dot between
// them.
func (d *dice) failedStates() packed {
	tag := d.fill(one(d, one(d, reserved...), one(d, reserved...), one(d, foreign...), "hostile/%m"))
	name := one(d, tag+"/_|-a_|-b_|-"+d.mark(), tag+"/", "a_|-b_|-c_|-"+tag, "file_|-"+tag+"_|-b_|-managed")
	state := dict(pair("result", one(d, flag(false), flag(false), flag(true), null)), pair("hostile", text(d.mark())),
		pair(one(d, "id", "minions", "event", "name"), one(d, text(d.other()), d.odd())),
		pair(one(d, "jid", "act", "reactors"), d.aJid()))
	states := dict(pair("test_|-a_|-a_|-nop", dict(pair("result", flag(true)))), pair(name, state))
	return one(d, states, states, states, list(states), dict(pair("state.sls", states)))
}

func (d *dice) syndicLoad() packed {
	if d.in(2) { // as a syndic has it, about a minion that does not exist
		return dict(pair("id", text(d.who.own)), pair("jid", one(d, text(d.jid()), text(d.madeUpJid()))),
			pair("fun", text("test.ping")),
			pair("return", dict(pair(d.mark(), dict(pair("return", text(d.mark())),
				pair("retcode", number(0)))))), pair("master_id", text(d.node())))
	}
	return dict(pair("id", text(d.id())), pair("jid", d.aJid()), pair("return", d.returns()), pair("fun", d.function()),
		pair("load", d.data()), pair("master_id", text(d.node())))
}

// odd is a value that masters do not expect.
func (d *dice) odd() packed {
	switch d.IntN(16) {
	case 0:
		return null
	case 1:
		return d.number()
	case 2:
		return list()
	case 3:
		return dict()
	case 4:
		return bin(d.mark())
	case 5:
		return extension(78, "20260101T00:00:00.000000")
	case 6:
		return extension(byte(d.IntN(128)), d.mark())
	case 7:
		return nested(text(d.mark()), 1+d.IntN(60), d.in(2))
	case 8:
		return nested(text(d.mark()), 200+d.IntN(2000), d.in(2))
	case 9:
		return text("\xff\xfe\x00" + d.mark())
	case 10:
		return text(strings.Repeat(d.mark(), 1+d.IntN(4000)))
	case 11:
		return dict(entry{number(1), text(d.mark())}, entry{list(number(1)), null})
	case 12:
		return float(math.Inf(1))
	case 13:
		return list(text(d.mark()), d.number(), flag(true), null)
	case 14:
		return text("{{ 7 * 7 }}" + d.mark())
	}
	return text(d.mark())
}
