package config

func signInOptions() []Option {
	const section = "Sign-ins of minions"
	return []Option{
		{
			Name: "signin_cpu_percent", Section: section, field: func(c *Config) any { return &c.SignIn.CPUPercent },
			Doc: "Percentage of this host's CPUs that sign-ins (_auth) may use at most, so that requests, returns and publications " +
				"get through while thousands of minions sign in. Each takes two RSA operations; the metric saltcluster_signin_capacity_per_second is how many a second that allows.",
			check: intBetween(5, 100),
		},
		{
			Name: "rsa_backend", Section: section, field: func(c *Config) any { return &c.SignIn.RSABackend },
			Doc: "Implementation of the private operations of the cluster's key, two for each sign-in. auto: OpenSSL 3 of this " +
				"host (libcrypto.so.3) where it can be loaded and agrees with Go, else Go, which takes up to three times as " +
				"long; the log has the choice and its reason. go: never the library. libcrypto: saltclusterd does not start " +
				"without it. With GODEBUG=fips140=on it is always Go.",
			check: oneOf(RSAAuto, RSAGo, RSALibcrypto),
		},
		{
			Name: "new_minion_rate", Section: section, field: func(c *Config) any { return &c.SignIn.NewRate },
			Doc: "Number of keys unknown to the cluster that this node passes to the local master per second; forty seconds' worth may come at once. " +
				"A minion beyond that gets the answer that its key is pending, and is listed, or accepted by auto_accept and the like, only when it asks " +
				"again (acceptance_wait_time). Sign-ins of keys that wait for acceptance or were rejected have the same limit, separately. " +
				"0: no limit, as stock masters have it.",
			check: intBetween(0, 1<<20),
		},
		{
			Name: "new_minion_rate_per_address", Section: section,
			field: func(c *Config) any { return &c.SignIn.NewRatePerAddress },
			Doc:   "new_minion_rate for one address (IPv6: one /64 network). Behind a load balancer all minions may have its address. 0: no limit.",
			check: intBetween(0, 1<<20),
		},
		{
			Name: "max_pending_keys", Section: section, field: func(c *Config) any { return &c.SignIn.MaxPendingKeys },
			Doc:   "Number of keys that may wait for acceptance in the whole cluster. When there are that many, further new minions get the answer that they are pending, and are not listed until others have been accepted, rejected or deleted. 0: no limit.",
			check: intBetween(0, 1<<20),
		},
		{
			Name: "cluster_keys_max_delete", Section: section, field: func(c *Config) any { return &c.SignIn.KeysMaxDelete },
			Doc: "Percentage of the accepted keys that may be deleted, rejected or replaced within a minute through the salt-masters (salt-key, the wheel, " +
				"engines, reactors). More than that, and more than three, are restored until an operator decides: saltclusterctl keys held. " +
				"The same applies to two or three at once that are more than a third of all keys, more than three within an hour that would leave " +
				"less than half of the keys, and any others on a host where some are held. " +
				"Where thorium deletes keys by the events of its own master, each deleted key is restored. 100: nothing is held.",
			check: intBetween(1, 100),
		},
	}
}

// Values of rsa_backend.
const (
	RSAAuto      = "auto"
	RSAGo        = "go"
	RSALibcrypto = "libcrypto"
)
