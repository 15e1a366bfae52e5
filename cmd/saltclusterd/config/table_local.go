package config

import "time"

func saltOptions() []Option {
	const section = "The local salt-master"
	return []Option{
		{
			Name: "salt_config", Section: section, field: func(c *Config) any { return &c.Salt.Config },
			Doc: "Path of the salt-master's configuration; directories, ports, roots and user are read from there.", check: checkAbsolute,
		},
		{
			Name: "salt_master_command", Section: section, field: func(c *Config) any { return &c.Salt.MasterCommand },
			Doc: "Program of the salt-master; saltclusterd runs it with --version.", check: notEmpty,
		},
		{
			Name: "master_restart_command", Section: section, field: func(c *Config) any { return &c.Salt.RestartCommand },
			Doc: "Program and arguments, as a list, that restart the salt-master after a join gave it a new identity. " +
				"Default: none; status asks the operator to do it.",
			Example: "[systemctl, restart, salt-master]",
		},
		{
			Name: "upstream_connections", Section: section, field: func(c *Config) any { return &c.Salt.UpstreamConnections },
			Doc: "Number of requests that the local salt-master works on at a time; others wait.", check: intBetween(1, 4096),
		},
		{
			Name: "forward_timeout", Section: section, field: func(c *Config) any { return &c.Salt.ForwardTimeout },
			Doc: "Time a forwarded request may take. Pillars, runners and files that the salt-master itself serves have three minutes at least, " +
				"the time that minions wait by Salt's defaults. Raise it where minions have a longer request_channel_timeout.",
			check: durationBetween(time.Second, time.Hour),
		},
		{
			Name: "master_stuck_after", Section: section, field: func(c *Config) any { return &c.Salt.StuckAfter },
			Doc: "A salt-master that answers nothing for this time, not even small test requests, counts as hung: other masters do its work until it answers again. While each of its workers may be busy with a pillar, a runner or a file server, it counts as hung " +
				"after three minutes (forward_timeout, when that is longer). A process that is stopped is noticed within five seconds in any case.", check: durationBetween(time.Second, time.Hour),
		},
		{
			Name: "native_returns", Section: section, field: func(c *Config) any { return &c.Salt.NativeReturns },
			Doc: "True: write returns to the master's job cache, fire their events and those of minions, and answer what minions send and ask about " +
				"mines, without the salt-master, where its configuration allows that (saltclusterctl status says so). False: the salt-master gets all of these, and returns that arrive while it is down are kept for it.",
		},
		{
			Name: "cluster_native_files", Section: section, field: func(c *Config) any { return &c.Salt.NativeFiles },
			Doc: "auto: answer requests for files of file_roots without the salt-master, where its configuration allows that " +
				"(saltclusterctl status says so). off: the salt-master answers all of them.",
			check: oneOf(FilesAuto, FilesOff),
		},
		{
			Name: "spool_size", Section: section, field: func(c *Config) any { return &c.Salt.SpoolSize },
			Doc: "Largest size of the journal, below state_dir, in which returns are kept before they are acknowledged. The journals of " +
				"returns that wait for the salt-master, and for each node that cannot be reached, may have a quarter of it each.",
			check: sizeBetween(16*MiB, 1024*GiB),
		},
	}
}

func pathOptions() []Option {
	const section = "Places"
	return []Option{
		{
			Name: "state_dir", Section: section, field: func(c *Config) any { return &c.Paths.StateDir },
			Doc: "Directory of the node's own state: its key, the consensus log, journals. Never on a shared file system.", check: checkAbsolute,
			Applied: appliedMoved,
		},
		{
			Name: "run_dir", Section: section, field: func(c *Config) any { return &c.Paths.RunDir },
			Doc: "Directory of the admin socket and other files of the running process.", check: checkAbsolute,
		},
		{
			Name: "admin_socket", Section: section, field: func(c *Config) any { return &c.Paths.AdminSocket },
			Doc: "Path of the socket that saltclusterctl uses. Default: admin.sock in run_dir.", Example: "/run/saltclusterd/admin.sock",
			check: socketPath,
		},
		{
			Name: "admin_group", Section: section, field: func(c *Config) any { return &c.Paths.AdminGroup },
			Doc: "Group whose members may use the socket, and so saltclusterctl without sudo, beside root and the user saltclusterd runs as. With Salt's " +
				"packages, use salt. No group by default, because its members control the cluster: snapshots, with the private key of the masters in " +
				"them, come from that socket.",
			Example: "salt",
		},
	}
}

func healthOptions() []Option {
	const section = "Health and metrics"
	return []Option{
		{
			Name: "health_listen", Section: section, field: func(c *Config) any { return &c.Health.Listen },
			Applied: appliedAddress,
			Doc:     "Address and port for /livez, /readyz, /pub, /req, /leader, /metrics and /status over HTTP. Empty: off.",
			check:   listenOrEmpty,
		},
		{
			Name: "agent_check_listen", Section: section, field: func(c *Config) any { return &c.Health.AgentListen },
			Applied: appliedAddress,
			Doc:     "Address and port for HAProxy's agent-check. Empty: off.", Example: "0.0.0.0:4581", check: listenOrEmpty,
		},
		{
			Name: "agent_check_slow_start", Section: section, field: func(c *Config) any { return &c.Health.AgentSlowStart },
			Doc:   "Time over which the agent-check raises this node's weight from 10% to 100% after it has recovered. Servers in HAProxy's configuration need weight 100 for that, because ten percent of weight 1 is rounded to 0. 0: all at once.",
			check: durationBetween(0, time.Hour),
		},
		{
			Name: "health_trusted", Section: section, field: func(c *Config) any { return &c.Health.Trusted },
			Doc: "Networks that get reasons from the health port and may read /metrics and the status page. All other clients get the bare answer.",
		},
		{
			Name: "metrics", Section: section, field: func(c *Config) any { return &c.Health.Metrics },
			Doc: "True: serve /metrics for Prometheus on health_listen.",
		},
		{
			Name: "status_page", Section: section, field: func(c *Config) any { return &c.Health.Page },
			Doc: "True: serve a page about the cluster at /status on health_listen, for health_trusted, which is this host by default: " +
				"ssh -L 4580:127.0.0.1:4580 m1, then http://localhost:4580/status. It cannot change anything.",
		},
		{
			Name: "trace_endpoint", Section: section, field: func(c *Config) any { return &c.Health.TraceEndpoint },
			Doc: "OpenTelemetry collector (OTLP over HTTP, in JSON) that gets traces of some requests of minions, with a span for each step, on both nodes of a relayed request. Spans hold names of commands and nodes, times and " +
				"sizes, and no content of requests or answers. Empty: nothing is traced.",
			Example: "http://127.0.0.1:4318/v1/traces", check: urlOrEmpty,
		},
		{
			Name: "trace_one_in", Section: section, field: func(c *Config) any { return &c.Health.TraceOneIn },
			Doc:   "With trace_endpoint, one request of minions in this many is traced. A request that another node traces and relays is traced in any case.",
			check: intBetween(1, 1_000_000),
		},
		{
			Name: "trace_minion_ids", Section: section, field: func(c *Config) any { return &c.Health.TraceIDs },
			Doc: "True: spans contain the minions' ids.",
		},
	}
}
