package config

import "time"

func identityOptions() []Option {
	const section = "This node"
	return []Option{
		{
			Name: "id", Section: section, field: func(c *Config) any { return &c.ID },
			Doc: "Name of this node in the cluster: lower-case letters, digits, '.', '_' and '-', at most 63 characters. " +
				"It must never change once the node has joined. Default: the host's name.",
			Applied: appliedNever,
			Example: "m1.example.com",
		},
		{
			Name: "log_level", Section: section, field: func(c *Config) any { return &c.Log.Level },
			Doc: "Lowest level of messages that are logged: debug, info, warning or error. saltclusterctl logs level changes it for a while without a reload.", check: oneOf("debug", "info", "warning", "error"),
		},
		{
			Name: "log_format", Section: section, field: func(c *Config) any { return &c.Log.Format },
			Doc: "Format of the log: text (for people and the journal) or json, one object a line.", check: oneOf("text", "json"),
		},
	}
}

func clusterOptions() []Option {
	const section = "The cluster"
	return []Option{
		{
			Name: "cluster_id", Section: section, field: func(c *Config) any { return &c.Cluster.ID },
			Doc: "Name of the cluster, the same on every node. Required.", Example: "salt-production", Applied: appliedNever,
		},
		{
			Name: "cluster_peers", Section: section, field: func(c *Config) any { return &c.Cluster.Peers },
			Doc:     "Addresses of other members, host or host:port (default port: cluster_pool_port), through which this node joins at its first start. One that answers is enough. Empty on the first node.",
			Applied: appliedAtJoin,
			Example: "[10.0.0.12, 10.0.0.13]", check: everyHostPort,
		},
		{
			Name: "cluster_secret", Section: section, field: func(c *Config) any { return &c.Cluster.Secret },
			Doc: "The secret that proves the right to join; it is never sent over the network. At least 22 random characters (128 bits), the same on " +
				"every node: " + generateSecret + ". The file that holds it must not be readable by everyone. Required, " +
				"here, in cluster_secret_file, or as the systemd credential cluster_secret, unless there is a join token.",
			Applied: appliedAtJoin,
			Example: "'...'",
		},
		{
			Name: "cluster_secret_file", Section: section, field: func(c *Config) any { return &c.Cluster.SecretFile },
			Doc: "A file whose first line is the secret, instead of cluster_secret. ${CREDENTIALS_DIRECTORY} and other " +
				"environment variables are replaced. Default: ${CREDENTIALS_DIRECTORY}/cluster_secret when systemd provides it.",
			Applied: appliedAtJoin,
			Example: "/etc/salt/saltclusterd.secret",
		},
		{
			Name: "cluster_join_token_file", Section: section, field: func(c *Config) any { return &c.Cluster.JoinTokenFile },
			Doc: "A file with a one-time join token (saltclusterctl token create, on a member), with which this node joins instead of " +
				"with the secret. It must not be readable by everyone. It works once. ${NAME} is replaced as above. " +
				"Default: ${CREDENTIALS_DIRECTORY}/cluster_join_token when systemd provides it.",
			Applied: appliedAtJoin,
			Example: "/etc/salt/saltclusterd.token",
		},
		{
			Name: "cluster_pub_fingerprint", Section: section, field: func(c *Config) any { return &c.Cluster.PubFingerprint },
			Doc: "SHA-256 of the cluster's master.pub in hex; a joining node refuses a cluster with another key. " +
				"To get it, on a member: sha256sum /etc/salt/pki/master/master.pub. Default: any key is accepted.",
			Applied: appliedAtJoin,
			Example: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", check: checkFingerprint,
		},
		{
			Name: "cluster_pki_dir", Section: section, field: func(c *Config) any { return &c.Cluster.PKIDir },
			Doc:     "Directory of the cluster's key pair (cluster.pem, cluster.pub). Default: pki in state_dir.",
			Applied: appliedMoved,
			Example: "/var/lib/saltclusterd/pki", check: checkAbsolute,
		},
		{
			Name: "cluster_interface", Section: section, field: func(c *Config) any { return &c.Cluster.Interface },
			Doc: "Address on which the peer port listens, tcp and udp. Unlike interface, it may be a wildcard.", check: ipAddress,
			Applied: appliedAddress,
		},
		{
			Name: "cluster_pool_port", Section: section, field: func(c *Config) any { return &c.Cluster.PoolPort },
			Doc: "Number of the peer port, tcp and udp: the only port that the nodes use among themselves.", check: intBetween(1, 65535),
			Applied: appliedAddress,
		},
		{
			Name: "cluster_advertise", Section: section, field: func(c *Config) any { return &c.Cluster.Advertise },
			Doc:     "IP address, with or without :port, under which peers reach this node. Default: cluster_interface, or when that is a wildcard the first address of interface.",
			Example: "10.0.0.11", check: checkAdvertised,
		},
		{
			Name: "cluster_isolated_filesystem", Section: section,
			field: func(c *Config) any { return &c.Cluster.IsolatedFilesystem },
			Doc: "True: every master has its own disk, and saltclusterd replicates what they must have in common. False: pki_dir, the roots " +
				"and the targets of links in cachedir are on one mount that all masters share, and are not replicated. cachedir itself must never be on it. Must be the same on every node.",
		},
		{
			Name: "cluster_witness", Section: section, field: func(c *Config) any { return &c.Cluster.Witness },
			Doc: "True: this node votes and does nothing else. It needs no salt-master, reads no configuration of one, serves no " +
				"minions and gets no private key: the third vote for two sites. It cannot change once the node has joined.",
			Applied: appliedNever,
		},
		{
			Name: "cluster_max_voters", Section: section, field: func(c *Config) any { return &c.Cluster.MaxVoters },
			Doc:   "Number of members that vote; further members are kept in reserve. Must be the same on every node; the leader's value counts.",
			check: intBetween(1, 9),
		},
		{
			Name: "cluster_voter_timeout", Section: section, field: func(c *Config) any { return &c.Cluster.VoterTimeout },
			Doc:   "How long a voter may be down before a member in reserve gets its vote. If no member is in reserve, the voter keeps it.",
			check: durationBetween(5*time.Second, 7*24*time.Hour),
		},
		{
			Name: "cluster_job_replicas", Section: section, field: func(c *Config) any { return &c.Cluster.JobReplicas },
			Doc: "Number of nodes that keep each job for salt-run jobs.*: the first in ring order for its id. The one that published it " +
				"keeps it as well. Must be the same on every node. 1: only the one that published it.",
			check: intBetween(1, 64),
		},
		{
			Name: "cluster_certificate_age", Section: section, field: func(c *Config) any { return &c.Cluster.CertificateAge },
			Doc:   "Age at which this node renews its key and certificate for the peer port; the old ones are not accepted from then on. 0: only when saltclusterctl rotate certificates asks for it.",
			check: durationBetween(0, 10*365*24*time.Hour),
		},
		{
			Name: "cluster_alone_limit", Section: section, field: func(c *Config) any { return &c.Cluster.AloneLimit },
			Doc:   "How long a node without a majority serves its minions with what it knows, counted from its last contact with the cluster, restarts included. A longer time also serves minions whose key was deleted elsewhere for longer. 0: no limit.",
			check: durationBetween(0, 365*24*time.Hour),
		},
	}
}
