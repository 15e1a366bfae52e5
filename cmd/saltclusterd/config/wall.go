package config

import (
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"saltclusterd/sidecar/wall"
)

func wallOptions() []Option {
	const section = "The wall"
	return []Option{
		{
			Name: "cluster_wall", Section: section, field: func(c *Config) any { return &c.Edge.Wall },
			Doc: "Rules for requests of minions, each off, log (violations are counted and logged, but pass) or enforce. saltclusterctl wall shows the mode and the counts of each; docs/reference/wall.md explains them. " +
				"Rules that are not named are enforced, except mine_targets, which is log.",
			Example: "{event_ids: log}", check: wallModes,
		},
		{
			Name: "minion_request_rate", Section: section, field: func(c *Config) any { return &c.Edge.MinionRequestRate },
			Doc: "Requests per second that this node takes from one minion; twenty seconds' worth may come at once. Requests beyond that wait, for three " +
				"seconds at most; the rest are not answered, and the minion sends them again. 0: no limit.",
			check: intBetween(0, 1<<20),
		},
		{
			Name: "minion_request_bytes", Section: section, field: func(c *Config) any { return &c.Edge.MinionRequestBytes },
			Doc: "Bytes per second of requests that this node takes from one minion, as minion_request_rate. 0: no limit.", check: sizeBetween(0, 64*GiB),
		},
		{
			Name: "minion_answer_bytes", Section: section, field: func(c *Config) any { return &c.Edge.MinionAnswerBytes },
			Doc: "Bytes per second of answers to one minion, files among them; twenty seconds' worth may go at once. Beyond that, the minion's next request waits, as with minion_request_rate. 0: no limit.", check: sizeBetween(0, 64*GiB),
		},
		{
			Name: "minion_requests_at_once", Section: section,
			field: func(c *Config) any { return &c.Edge.MinionRequestsAtOnce },
			Doc: "Number of requests of one minion that the local salt-master works on at a time; others of that minion wait. 0: no limit. Whatever " +
				"this option says, requests that occupy a worker for long (minion_publish, minion_runner, _register_resources, mine.get by regular expressions) may use half of the workers, at least one.", check: intBetween(0, 4096),
		},
	}
}

// wordsByName takes a map of names to words, which may be written as what YAML takes for a boolean: off.
func wordsByName(n *yaml.Node, p *map[string]string) *mistake {
	if n.Kind != yaml.MappingNode {
		return &mistake{node: n, msg: describeNode(n) + " is not a map of rules to modes", hint: "for example {event_ids: log}"}
	}
	out := make(map[string]string, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		var name string
		if m := decodeText(n.Content[i], &name); m != nil {
			return m
		}
		if _, twice := out[name]; twice {
			return &mistake{node: n.Content[i], msg: name + " is given twice"}
		}
		value := resolveAlias(n.Content[i+1])
		if value.Kind != yaml.ScalarNode {
			return &mistake{node: value, msg: describeNode(value) + " is not a mode", hint: "off, log or enforce"}
		}
		out[name] = value.Value
	}
	*p = out
	return nil
}

func wallModes(v any) (string, string) {
	modes := v.(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(modes)) {
		if _, err := wall.ParseRule(name); err != nil {
			return err.Error(), didYouMean(name, wall.Names())
		}
		if _, err := wall.ParseMode(modes[name]); err != nil {
			return fmt.Sprintf("%s: %q is not one of off, log, enforce", name, modes[name]), didYouMean(modes[name],
				wall.ModeNames)
		}
	}
	return "", ""
}
