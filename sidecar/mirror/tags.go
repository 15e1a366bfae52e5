package mirror

import (
	"regexp"
	"strings"

	"saltclusterd/sidecar/fnmatch"
)

// Prefix begins the tag of every mirrored event.
const Prefix = "cluster/event/"

// maxTag bounds a tag. Salt knows no limit; the longest of its own have a minion's id and a jid in them.
const maxTag = 1024

// isInternal says whether a tag is what a master tells itself, or was mirrored already.
//
// cluster/: Salt's own clusters (channel/server.py) and ours. salt/reactors/manage: utils/reactor.py acts on every tag
// that ends so. salt/event/exit: ends the returner of events. The AES key: master.py. __: what clients send to
// themselves.
func isInternal(tag string) bool {
	for _, prefix := range []string{"cluster/", "__", "salt/event/exit", "rotate_", "salt/reactors/", "master_minion/",
		"fire_master"} {
		if strings.HasPrefix(tag, prefix) {
			return true
		}
	}
	return strings.Contains(tag, "salt/reactors/manage")
}

// isUsable says whether a tag may stand behind Prefix.
func isUsable(tag string) bool {
	return tag != "" && len(tag) <= maxTag && !strings.ContainsAny(tag, "\n\x00") && !isInternal(tag)
}

// globs are the tags that are mirrored.
type globs []*regexp.Regexp

func compileGlobs(tags []string) (globs, error) {
	var g globs
	for _, tag := range tags {
		re, err := fnmatch.Compile(tag)
		if err != nil {
			return nil, err
		}
		g = append(g, re)
	}
	return g, nil
}

func (g globs) matchesTag(tag string) bool {
	for _, re := range g {
		if re.MatchString(tag) {
			return isUsable(tag)
		}
	}
	return false
}
