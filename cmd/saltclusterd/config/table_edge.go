package config

import "time"

func edgeOptions() []Option {
	const section = "What minions see"
	return []Option{
		{
			Name: "interface", Section: section, field: func(c *Config) any { return &c.Edge.Interface },
			Doc: "Address, or list of addresses, on which minions (or the load balancer) reach this node. Never a wildcard: " +
				"that would also claim the loopback address, where the local salt-master listens. Default: every " +
				"address of this host except loopback.",
			Applied: appliedAddress,
			Example: "[10.0.0.11, '2001:db8::11']",
		},
		{
			Name: "publish_port", Section: section, field: func(c *Config) any { return &c.Edge.PublishPort },
			Doc: "Port on which minions connect for publications, as publish_port of a salt-master.", check: intBetween(1, 65535),
			Applied: appliedAddress,
		},
		{
			Name: "ret_port", Section: section, field: func(c *Config) any { return &c.Edge.RetPort },
			Doc: "Port on which minions connect for requests and returns, as ret_port of a salt-master.", check: intBetween(1, 65535),
			Applied: appliedAddress,
		},
		{
			Name: "proxy_protocol", Section: section, field: func(c *Config) any { return &c.Edge.ProxyProtocol },
			Doc: "True: load balancers send the address of the client (PROXY protocol, version 1 or 2; HAProxy: send-proxy-v2), so that logs, " +
				"limits per address and allow_clear_commands use the minions' own addresses. Connections from proxy_protocol_trusted must then begin with this header; a header from anywhere else is refused.",
		},
		{
			Name: "proxy_protocol_trusted", Section: section, field: func(c *Config) any { return &c.Edge.ProxyProtocolTrusted },
			Doc:     "Networks of the load balancers whose header is accepted. No other host may have an address in them.",
			Example: "[10.0.0.5, 10.0.0.6]",
		},
		{
			Name: "allow_clear_commands", Section: section, field: func(c *Config) any { return &c.Edge.AllowClearCommands },
			Doc: "Networks that may send an unencrypted admin command (publish, runner, wheel, mk_token, get_token) through " +
				"this node: Salt's Python client on hosts without a master. None by default: salt-api and tools on this host talk to the master itself.",
			Example: "{publish: [10.0.9.0/24], mk_token: [10.0.9.0/24]}", check: clearCommands,
		},
		{
			Name: "request_minimum_version", Section: section,
			field: func(c *Config) any { return &c.Edge.RequestMinimumVersion },
			Doc: "Lowest payload version of a request, as Salt's minimum_auth_version. 3, Salt's own default, means session keys " +
				"and signed identities; 2 is for minions too old for it, and the masters must also allow it.",
			check: intBetween(2, 3),
		},
		{
			Name: "cluster_transports", Section: section, field: func(c *Config) any { return &c.Edge.Transports },
			Doc: "Transports that minions may use, as their option transport names them, all on the same two ports. Masters keep " +
				"transport: zeromq whatever their minions use.",
			Example: "[zeromq]", check: transportNames,
		},
		{
			Name: "cluster_require_tls", Section: section, field: func(c *Config) any { return &c.Edge.RequireTLS },
			Doc: "True: minions without TLS are refused, and cut off when this is applied. Without a usable option ssl of the " +
				"master, no minion connects.",
		},
		{
			Name: "late_jobs", Section: section, field: func(c *Config) any { return &c.Edge.LateJobs },
			Doc: "True: a minion that was between two connections when a job was published gets it when it is back, up to a minute late. Must be " +
				"false where minions have a lower minion_jid_queue_hwm than Salt's 100. Always off on a master with order_masters.",
		},
		{
			Name: "rotate_interval", Section: section, field: func(c *Config) any { return &c.Edge.RotateInterval },
			Doc: "Age at which the AES key of publications is replaced, as publish_session of Salt's masters, and with it the seed of minions' " +
				"session keys, so recorded requests become worthless. At most 24h: a longer time, and 0, mean 24h. " +
				"The leader's setting counts.",
			check: durationBetween(0, 365*24*time.Hour),
		},
		{
			Name: "rotate_window", Section: section, field: func(c *Config) any { return &c.Edge.RotateWindow },
			Doc: "Time over which connected minions are moved to a new AES key, so that they do not all sign in at once. " +
				"After a key was deleted or rejected a shorter time is used.",
			check: durationBetween(time.Second, time.Hour),
		},
		{
			Name: "drain_announce", Section: section, field: func(c *Config) any { return &c.Edge.DrainAnnounce },
			Doc: "On drain and stop, time between the announcement to load balancers (health answers, agent-check) and the first minion that is disconnected. Set it to the check interval of the load balancers, multiplied by the failed checks they wait for.", check: durationBetween(0, 10*time.Minute),
		},
		{
			Name: "drain_time", Section: section, field: func(c *Config) any { return &c.Edge.DrainTime },
			Doc: "On drain and stop, time over which connected minions are disconnected.", check: durationBetween(0, 10*time.Minute),
		},
	}
}

func limitOptions() []Option {
	const section = "Limits towards minions"
	return []Option{
		{
			Name: "max_connections", Section: section, field: func(c *Config) any { return &c.Edge.MaxConnections },
			Doc: "Largest number of connections per port. The service's LimitNOFILE must allow twice as many.", check: intBetween(1, 1<<20),
		},
		{
			Name: "max_connections_per_address", Section: section,
			field: func(c *Config) any { return &c.Edge.MaxConnectionsPerAddress },
			Doc: "Largest number of connections per port from one address. Behind a load balancer all minions have its address; set it " +
				"lower where they come directly. The addresses of an IPv6 /64 together may have as many, and at least half of " +
				"max_connections, because a whole fleet may be in one.",
			check: intBetween(1, 1<<20),
		},
		{
			Name: "max_request_size", Section: section, field: func(c *Config) any { return &c.Edge.MaxRequestSize },
			Doc: "Size of the largest request that is accepted.", check: sizeBetween(64*KiB, GiB),
		},
		{
			Name: "max_request_memory", Section: section, field: func(c *Config) any { return &c.Edge.MaxRequestMemory },
			Doc:   "Memory for incomplete and unanswered requests, all connections together. When it is used up, incomplete requests are cut, those of strangers first. Answers that minions do not read may take as much again; beyond that, minions that do not read are cut.",
			check: sizeBetween(MiB, 64*GiB),
		},
		{
			Name: "memory_limit", Section: section, field: func(c *Config) any { return &c.Edge.MemoryLimit },
			Doc:   "Memory limit of the whole process: garbage is collected as often as it takes to stay below. What the other limits allow must fit: 120 MiB, 40 KiB per minion (110 KiB with TLS), three times max_request_memory and pub_queue_bytes. 0: no limit.",
			check: sizeBetween(0, 1024*GiB),
		},
		{
			Name: "max_in_flight", Section: section, field: func(c *Config) any { return &c.Edge.MaxInFlight },
			Doc: "Largest number of requests in progress, all connections together.", check: intBetween(1, 1<<20),
		},
		{
			Name: "max_in_flight_per_connection", Section: section,
			field: func(c *Config) any { return &c.Edge.MaxInFlightPerConnection },
			Doc:   "Largest number of requests in progress per connection.", check: intBetween(1, 1<<16),
		},
		{
			Name: "heartbeat_interval", Section: section, field: func(c *Config) any { return &c.Edge.Heartbeat },
			Doc: "Time between two PINGs on a publish connection, plus or minus a fifth. Keep it below half of the idle timeout of " +
				"every load balancer and firewall in between.", check: durationBetween(time.Second, 10*time.Minute),
		},
		{
			Name: "heartbeat_timeout", Section: section, field: func(c *Config) any { return &c.Edge.HeartbeatTimeout },
			Doc:   "Time after a PING in which a subscriber must answer. A subscriber that does not is disconnected.",
			check: durationBetween(time.Second, time.Hour),
		},
		{
			Name: "handshake_timeout", Section: section, field: func(c *Config) any { return &c.Edge.HandshakeTimeout },
			Doc:   "Time in which a new connection must finish its handshake.",
			check: durationBetween(100*time.Millisecond, 5*time.Minute),
		},
		{
			Name: "pub_queue_messages", Section: section, field: func(c *Config) any { return &c.Edge.PubQueueMessages },
			Doc: "Number of publications that may wait for one slow minion. A minion with more is disconnected, and reconnects.", check: intBetween(1, 1<<20),
		},
		{
			Name: "pub_queue_bytes", Section: section, field: func(c *Config) any { return &c.Edge.PubQueueBytes },
			Doc: "Size of the publications that may wait for one slow minion. A minion with more is disconnected, and reconnects.", check: sizeBetween(64*KiB, 16*GiB),
		},
	}
}
