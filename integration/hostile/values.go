package hostile

import (
	"math"
	"path/filepath"
	"strings"
)

// value returns a value of a kind: a usual one, one that belongs to others, or one that masters do not expect (odd).
func (d *dice) value(k kind) packed {
	if d.in(16) {
		return d.odd()
	}
	switch k {
	case anID:
		return text(d.id())
	case aJid:
		return d.aJid()
	case noJobsJid:
		return text(d.madeUpJid())
	case aTag:
		return text(d.tag())
	case aPath:
		return text(d.path())
	case pathParts:
		return d.parts()
	case anEnv:
		return text(one(d, "base", "base", "base", "../base", "..", ".", "", "/", "__env__", "dev", "base\x00", d.path(),
			d.mark()))
	case aFunction:
		return d.function()
	case arguments:
		return d.arguments()
	case aTarget:
		return d.target()
	case aTargetType:
		return text(one(d, "glob", "glob", "list", "grain", "pillar", "pillar_pcre", "pillar_exact", "compound", "pcre",
			"nodegroup", "ipcidr", "range", "node", "", d.mark()))
	case aNumber:
		return d.number()
	case aFlag:
		return flag(d.in(2))
	case aNode:
		return text(one(d, d.node(), d.node(), d.who.own, "nobody", "../"+d.node(), ""))
	case aToken:
		return d.token()
	case aUser:
		return text(one(d, "root", "sudo_root", "salt", d.who.own, d.mark()))
	case aKey:
		return text(d.key())
	}
	return d.structure(k)
}

// structure is a value of a kind that has parts.
func (d *dice) structure(k kind) packed {
	switch k {
	case someData:
		return d.data()
	case eventList:
		return d.events()
	case returnList:
		return one(d, list(d.syndicLoad()), list(d.syndicLoad(), d.syndicLoad()))
	case returnMap:
		return d.returns()
	case grains:
		return dict(pair("id", text(d.id())), pair("os", text("Debian")), pair("hostile", text(d.mark())),
			pair("roles", list(text("web"), d.odd())),
			pair("nodename", text(d.path())), pair("master", text(d.node())))
	case resources:
		return dict(pair("ssh", list(text(d.mark()), text(d.other()), d.odd())), pair(d.mark(), list(text(d.id()))),
			pair("dummy:"+d.mark(), d.data()))
	case resourceGrains:
		return dict(pair("ssh:"+d.mark(), d.data()), pair(d.path(), d.data()), pair("dummy:"+d.path(), d.data()),
			pair(strings.Repeat("../", d.IntN(4))+one(d, "grains/", "mine/", "minions/")+d.other(), d.data()))
	case aPretag:
		return text(d.fill(one(d, one(d, fronts...), one(d, fronts...), d.tag())))
	case configuration:
		return dict(pair("id", one(d, text(d.id()), text(d.who.own), d.odd())),
			pair("grains", dict(pair("id", text(d.id())), pair("x", d.odd()))), pair("saltenv", text(d.path())))
	case stateRun:
		return one(d, text("state.sls"), text("state.sls"), text("state.highstate"), bin("state.sls"),
			list(text("state.sls"), text("test.ping")))
	case failedStates:
		return d.failedStates()
	case aRetcode:
		return one(d, number(2), number(2), number(1), number(0), text("x"), list(number(1)), flag(true))
	case pillarExt:
		return dict(pair("libvirt", dict(pair("a", text(d.mark())))),
			pair(one(d, "cmd_yaml", "file_tree", "git", "stack"), text(d.path())))
	}
	return text(one(d, d.mark(), "nested", "txt", "OAEP-SHA1", "PKCS1v15-SHA1", strings.Repeat("0f", 16)))
}

func (d *dice) id() string {
	own, other := d.who.own, d.other()
	return one(d, own, own, other, other, ".saltclusterd", d.node(), d.node()+"_master", "../"+other, own+"/../"+other,
		own+"\x00"+other, "*", "", ".", "..",
		other+"\n", strings.ToUpper(other), " "+other, own+strings.Repeat("x", 300), "\xff\xfe"+d.mark(), one(d, jobNames...))
}

func (d *dice) aJid() packed {
	up := strings.Repeat("../", 1+d.IntN(8)) + d.mark()
	return one(d, text(d.jid()), text(d.jid()), text("req"), text("nocache"), text(d.madeUpJid()), text(d.madeUpJid()),
		text(up), text("/"+d.mark()), text(""), number(2099120112000000001),
		text(d.jid()+"\x00"), text(d.jid()+"/../"+d.mark()), list(text(d.jid())))
}

// jobNames are what stands beside the returns in a job's directory.
var jobNames = []string{"nocache", "jid", "endtime"}

// reserved are tags with which masters and clusters tell each other things; %o is another minion, %j a job.
var reserved = []string{
	"salt/key", "salt/auth", "key", "rotate_aes_key", "rotate_cluster_aes_key", "salt/job/%j/new", "salt/job/%j/publish",
	"salt/job/%j/return",
	"salt/run/%j/new", "salt/run/%j/ret", "salt/wheel/%j/new", "salt/wheel/%j/ret", "salt/cloud/x/created",
	"salt/presence/change",
	"salt/presence/present", "salt/cluster/x", "cluster/peer", "cluster/pub_aes", "salt/master/x/start",
	"salt/netapi/hook", "salt/stats/x", "salt/batch/%j/start", "minion/refresh/%o", "resource/refresh/%o",
	"salt/reactors/manage/add",
	"%m/salt/reactors/manage/list", "salt/event/exit",
}

// foreign are tags in the name of another minion.
var foreign = []string{"salt/job/%j/ret/%o", "salt/minion/%o/start", "salt/beacon/%o/load/", "salt/job/%j/prog/%o/1",
	"salt/syndic/%o/start", "syndic/job/%j/ret/%o",
	"salt/job/%j/sub/%o/error/state.sls", "salt/job/%j/start/%o"}

// halves are tags that become others with something before them, and what makes them so.
var halves, fronts = []string{"key", "auth", "job/%j/new", "%j/publish", "manage/add", "job/%j/ret/%o", "%o/start",
	"refresh/%o"},
	[]string{"salt", "salt/job", "salt/", "salt/reactors", "salt/minion", "minion", "salt/job/%j", "syndic/%i", "cluster",
		""}

// ownTags are tags that a minion may use. The data of an event with such a tag may still say otherwise (judgeData).
var ownTags = []string{"salt/minion/%i/start", "salt/beacon/%i/load/", "salt/job/%j/prog/%i/1", "salt/job/%p/ret/%i",
	"hostile/%m", "my/own/%m", "syndic/job/%p/ret/%i"}

func (d *dice) tag() string {
	t := one(d, one(d, reserved...), one(d, reserved...), one(d, foreign...), one(d, ownTags...), one(d, ownTags...),
		one(d, halves...), "hostile/%m\n\nsalt/key", "%m"+strings.Repeat("/t",
			4000), "", " salt/key", "SALT/KEY", "salt//key")
	return d.fill(t)
}

func (d *dice) fill(t string) string {
	return strings.NewReplacer("%j", one(d, d.jid(), d.madeUpJid()), "%p", d.jid(), "%o", d.other(), "%i", d.who.own, "%m",
		d.mark()).Replace(t)
}

func (d *dice) path() string {
	up := strings.Repeat("../", 1+d.IntN(14))
	outside := strings.TrimPrefix(filepath.Join(d.who.outside, canary), "/")
	return one(d, "top.sls", "demo/init.sls", "salt://top.sls", "top.sls\x00", "/"+outside, up+outside, up+outside,
		"demo/"+up+outside, "demo/../../"+d.mark(),
		strings.ReplaceAll(up, "/", "\\")+outside, "%2e%2e%2f"+outside, "salt://"+up+outside, "file:///"+outside, "", ".",
		"..", "/", "~/"+d.mark(),
		"|"+d.mark(), "|/"+outside, "|..", strings.Repeat("a/",
			3000)+d.mark(), "\xff\xfe"+d.mark(), up+"etc/salt/pki/master/master.pem", "top.sls?saltenv=../../..")
}

func (d *dice) parts() packed {
	var parts []packed
	for p := range strings.SplitSeq(d.path(), "/") {
		if parts = append(parts, text(p)); len(parts) > 40 {
			break
		}
	}
	return one(d, list(parts...), list(parts...), list(text(d.path()), text(d.mark())), text(d.path()),
		list(text("/"), text(d.mark())), list())
}

// function of which those that would do something do it to a file that is looked for.
func (d *dice) function() packed {
	return one(d, text("test.ping"), text("test.ping"), text("test.arg"), text("grains.items"), text("file.touch"),
		text("test.ping,file.touch"),
		text("state.apply"), text("publish.publish"), text("manage.up"), text("key.list_all"), text("error.error"),
		text("test.*"), text("__init__"), text(d.mark()),
		list(text("test.ping"), text("file.touch")))
}

func (d *dice) arguments() packed {
	touched := text(filepath.Join(d.who.outside, "touched-"+d.mark()))
	return one(d, list(), list(text(d.mark())), list(touched), list(list(), list(touched)),
		list(dict(pair("__kwarg__", flag(true)), pair("name", touched))), text(d.mark()), null)
}

func (d *dice) target() packed {
	return one(d, text("*"), text(d.other()), text(d.who.own), list(text(d.other()), text(d.who.own)), text("G@os:*"),
		text("E@.*("), text("(a+)+$"), text("10.0.0.0/8"), text(d.mark()), text(""))
}

func (d *dice) number() packed {
	return one(d, number(0), number(0), number(1), number(-1), number(math.MaxInt64), number(math.MinInt64), number(1<<31),
		number(1<<40), float(1e300), float(math.NaN()), text("0"), number(5))
}

func (d *dice) token() packed {
	return one(d, text(string(d.who.token)), text(""), text(strings.Repeat("\x00", 256)), text(d.mark()),
		text(strings.Repeat("f", 64)), null)
}

func (d *dice) key() string {
	const head, tail = "-----BEGIN PUBLIC KEY-----\n", "\n-----END PUBLIC KEY-----"
	return one(d, d.who.pub, d.who.pub, d.who.pub, "", d.mark(), head+tail, head+"MA=="+tail,
		head+strings.Repeat("A",
			5000)+tail, head+d.mark()+tail, "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----")
}
