package metric

import (
	"fmt"
	"slices"
	"strings"
)

// Prefix begins the name of each metric.
const Prefix = "saltcluster_"

// Kind is the type of a metric.
type Kind string

// The kinds, as Prometheus names them.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Subsystems are the words that follow Prefix in a name, with what is counted there.
var Subsystems = []struct{ Name, Meaning string }{
	{"admin", "The admin socket"},
	{"build", "The program"},
	{"consensus", "What the cluster agrees on, by raft"},
	{"datacache", "Grains, pillars and mines of minions and their replication, by the label `kind`"},
	{"eauth", "Eauth tokens, and their replication"},
	{"edge", "Connections of minions, by the label `edge`: pub (4505) or req (4506)"},
	{"epoch", "The AES key of publications"},
	{"fanout", "Publications on their way to the minions of all nodes"},
	{"fileserve", "Requests for files, answered without the salt-master"},
	{"gossip", "Who is alive"},
	{"health", "Health checks"},
	{"jobcache", "The salt-master's job cache"},
	{"jobs", "Jobs, and their replication"},
	{"journal", "Returns on disk until they are handled"},
	{"keys", "Key files of minions"},
	{"master", "The salt-master beside this node, and its event bus"},
	{"minion", "Requests, returns and events of minions"},
	{"mirror", "Events of other salt-masters"},
	{"node", "This node"},
	{"peer", "Connections of members"},
	{"returns", "Returns that wait"},
	{"roots", "File_roots and pillar_roots"},
	{"share", "The shared file system"},
	{"signin", "Sign-ins of minions"},
	{"tls", "Certificates for minions with TLS"},
	{"trace", "Tracing"},
	{"wall", "Rules for what minions may ask"},
}

// units are the last words of names: a base unit, what is counted (in the plural), or what a number of its own says.
var units = map[Kind][]string{
	Counter: {
		"attempts", "bytes", "changes", "chunks", "claims", "connections", "damages", "deliveries", "events", "failures",
		"faults", "files", "findings", "groups", "hits", "jobs", "joins", "messages", "minions", "packets", "proposals",
		"publications", "readings", "records", "replies", "requests", "returns", "stalls", "subscriptions", "versions",
	},
	Gauge: {
		"bytes", "changes", "conflicts", "connections", "copies", "events", "files", "jobs", "members", "minions",
		"records", "requests", "seconds", "subscribers", "tokens",
		"index", "level", "number", "revision", "term", // they have no unit
		"draining", "leader", "ready", "up", // states: 1, else 0
		"info",       // always 1: the labels say something
		"per_second", // a capacity; what happens is a counter
	},
	Histogram: {"bytes", "records", "requests", "seconds"},
}

// CheckName returns an error unless name is saltcluster_<subsystem>_<what>_<unit>, with _total after it for a counter
// and for nothing else.
func CheckName(name string, kind Kind) error {
	rest, ok := strings.CutPrefix(name, Prefix)
	if !ok {
		return fmt.Errorf("metric %s: begin the name with %s", name, Prefix)
	}
	subsystem, rest, _ := strings.Cut(rest, "_")
	if !isSubsystem(subsystem) {
		return fmt.Errorf("metric %s: %q is not in metric.Subsystems", name, subsystem)
	}
	counted, isTotal := strings.CutSuffix(rest, "_total")
	if isTotal != (kind == Counter) {
		return fmt.Errorf("metric %s: counters end in _total, and nothing else does; it is a %s", name, kind)
	}
	for _, unit := range units[kind] {
		if counted == unit || strings.HasSuffix(counted, "_"+unit) {
			return nil
		}
	}
	return fmt.Errorf("metric %s: the last word of a %s is a base unit or what is counted, one of %s (package metric)",
		name, kind, strings.Join(units[kind], ", "))
}

func isSubsystem(word string) bool {
	return slices.ContainsFunc(Subsystems, func(s struct{ Name, Meaning string }) bool { return s.Name == word })
}
