package wall

import "strings"

// Masters and clusters tell themselves things under these tags; tools, reactors and masters act on them. The first
// group is what stock masters keep out of lists (salt/daemons/masterapi.py:MINION_EVENT_BLACKLIST), the second what no
// minion fires either.
var (
	stockPrefixes = []string{"salt/cloud/", "salt/run/", "salt/cluster/"}
	otherPrefixes = []string{
		"salt/auth/", "salt/key/", "salt/wheel/", "salt/presence/", "salt/batch/", "salt/netapi/",
		"salt/master/", "salt/stats/", "cluster/", "minion/refresh/", "resource/refresh/", "rotate_aes_key",
		"rotate_cluster_aes_key",
	}
)

// jobEnds are the last parts of tags of jobs that masters fire.
var jobEnds = []string{"/publish", "/new", "/return"}

// StockTag says whether a tag is on the list of what stock masters keep out of lists of events.
func StockTag(tag string) bool {
	if !strings.HasPrefix(tag, "salt/") {
		return false
	}
	if rest, ok := strings.CutPrefix(tag, "salt/job/"); ok {
		return hasSuffix(rest, jobEnds)
	}
	if rest, ok := strings.CutPrefix(tag, "salt/wheel/"); ok {
		return hasSuffix(rest, jobEnds[1:])
	}
	return tag == "salt/key" || hasPrefix(tag, stockPrefixes)
}

// masterTag says whether a tag belongs to masters or clusters.
func masterTag(tag string) bool {
	switch {
	case tag == "":
		return true
	case StockTag(tag), isUnprintable(tag):
		return true
	case tag == "key", tag == "salt/auth", tag == exitTag:
		return true
	}
	return hasPrefix(tag, otherPrefixes) || strings.Contains(tag, reactorTag)
}

// reactorTag is in the tags with which reactors are added and removed (salt/utils/reactor.py), wherever it stands.
const reactorTag = "salt/reactors/manage"

// exitTag ends the process that hands events to event_return, wherever it comes from
// (salt/utils/event.py:EventReturn.run).
const exitTag = "salt/event/exit"

// jobTag says whether a client that waits for a job hears of an event with that tag.
func jobTag(tag string) bool {
	_, ok := afterJob(tag)
	return ok
}

// afterJob returns what comes behind the beginning of a tag of a job. Commands wait for salt/job/, salt-api's
// rest_tornado also for syndic/job/, and a salt-syndic beside a master takes whatever has a job id behind job/ for its
// job's (salt/minion.py:SyndicManager._process_event).
func afterJob(tag string) (rest string, ok bool) {
	front, rest, _ := strings.Cut(tag, "/")
	rest, ok = strings.CutPrefix(rest, "job/")
	if !ok || front != "salt" && front != "syndic" && !isJobID(rest) {
		return "", false
	}
	return rest, true
}

// isJobID says whether what comes before the first slash can be the id of a job that a master made
// (salt/utils/jid.py:is_jid).
func isJobID(s string) bool {
	s, _, _ = strings.Cut(s, "/")
	if len(s) != 20 && (len(s) <= 21 || s[20] != '_') {
		return false
	}
	return !strings.ContainsFunc(s[:20], func(c rune) bool { return c < '0' || c > '9' })
}

// waitedTag says whether who waits for a job may hear of an event with that tag. Below a master of syndics a command
// line looks for the job behind either word, wherever it stands (salt/client/__init__.py:LocalClient.get_iter_returns).
func waitedTag(tag string) bool {
	return strings.Contains(tag, "salt/job/") || strings.Contains(tag, "syndic/")
}

// isUnprintable says whether a tag would end before its end on the bus, where an empty line ends it.
func isUnprintable(tag string) bool {
	for i := range len(tag) {
		if tag[i] < ' ' {
			return true
		}
	}
	return false
}

func hasPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func hasSuffix(s string, suffixes []string) bool {
	for _, p := range suffixes {
		if strings.HasSuffix(s, p) {
			return true
		}
	}
	return false
}

// jobPart says whether what follows that part of a job's tag is the id of the minion it is told of:
// salt/job/<jid>/ret/<id>, .../start/<id> and .../prog/<id>/<n>, and .../sub/<id>/error/<function>, which masters fire
// of a state that failed (salt/utils/event.py:SaltEvent._fire_ret_load_specific_fun).
func jobPart(part string) bool {
	return part == "ret" || part == "prog" || part == "start" || part == "sub"
}

// jobTagID returns the id in a tag of a job that has one. Under Salt's own words it is one whatever stands before it:
// no Salt fires salt/job/<jid>/word/<id>, but a reactor may go by it, and whom it names has not said it.
func jobTagID(tag string) (id string, ok bool) {
	rest, ok := afterJob(tag)
	if !ok {
		return "", false
	}
	_, rest, ok = strings.Cut(rest, "/")
	if !ok {
		return "", false
	}
	part, id, ok := strings.Cut(rest, "/")
	if !ok || !jobPart(part) && !strings.HasPrefix(tag, "salt/") && !strings.HasPrefix(tag, "syndic/") {
		return "", false
	}
	id, _, _ = strings.Cut(id, "/")
	return id, true
}

var minionPrefixes = []string{"salt/minion/", "salt/beacon/", "salt/syndic/"}

// minionTag says whether an event with that tag is about the minion that its data name.
func minionTag(tag string) bool {
	return tag == "minion_start" || tag == "syndic_start" || hasPrefix(tag, minionPrefixes)
}

// minionTagID returns the id in a tag that names the minion it is about.
func minionTagID(tag string) (id string, ok bool) {
	for _, prefix := range minionPrefixes {
		if rest, about := strings.CutPrefix(tag, prefix); about {
			id, _, ok = strings.Cut(rest, "/")
			return id, ok
		}
	}
	return "", false
}
