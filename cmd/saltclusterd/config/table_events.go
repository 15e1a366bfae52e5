package config

func eventOptions() []Option {
	const section = "Events of minions"
	return []Option{
		{
			Name: "cluster_event_policy", Section: section, field: func(c *Config) any { return &c.Events.Policy },
			Doc: "On which master's bus the events of minions fire, by tag: globs as in a reactor's configuration, the first that matches " +
				"decides. owner: the ring's owner of the minion. origin: the node that the minion sent it to. leader: the " +
				"cluster's leader. all: every master, so that a reactor of each runs. Under owner and origin, an event of a job fires " +
				"where the job was published. Tags that no glob matches: owner. Must be the same on every node.",
			Example: "{'salt/beacon/*': leader, 'site/cache/flush': all}", check: everyTagRule,
		},
		{
			Name: "cluster_event_mirror", Section: section, field: func(c *Config) any { return &c.Events.Mirror },
			Doc: "Tags (globs) of events on this node's master that the other masters also get, as cluster/event/<id of this node>/<tag>, for " +
				"programs that watch there. Events that came from a mirror are not sent on, nor those that masters send to themselves.",
			Example: "['salt/minion/*/start']", check: everyTag,
		},
		{
			Name: "cluster_presence_events", Section: section, field: func(c *Config) any { return &c.Events.Presence },
			Doc: "Fire salt/presence/present and salt/presence/change, with the minions that are alive in the whole cluster, on one " +
				"master's bus (the leader's if it works), every loop_interval of that master. auto: when the master's own configuration has " +
				"presence_events, which its drop-in then turns off, because a master behind saltclusterd does not see the minions' connections. Must be the same on every node.",
			check: oneOf(PresenceAuto, PresenceOn, PresenceOff),
		},
	}
}
