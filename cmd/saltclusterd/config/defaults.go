package config

import (
	"net/netip"
	"slices"
	"time"
)

// DefaultPath is where the package installs the main file.
const DefaultPath = "/etc/salt/saltclusterd"

// DefaultConfig returns the defaults of the option table. Values that derive
// from others (id from the host's name, admin_socket from run_dir,
// cluster_pki_dir from state_dir) are still empty: Load fills them in.
func DefaultConfig() Config {
	return Config{
		Edge: Edge{
			PublishPort:              4505,
			RetPort:                  4506,
			MaxConnections:           65536,
			MaxConnectionsPerAddress: 32768,
			MaxRequestSize:           64 * MiB,
			MaxRequestMemory:         512 * MiB,
			MaxInFlight:              16384,
			MaxInFlightPerConnection: 32,
			HandshakeTimeout:         10 * time.Second,
			PubQueueMessages:         1000,
			PubQueueBytes:            64 * MiB,
			RotateInterval:           24 * time.Hour,
			RotateWindow:             5 * time.Minute,
			Heartbeat:                10 * time.Second,
			HeartbeatTimeout:         30 * time.Second,
			DrainAnnounce:            5 * time.Second,
			DrainTime:                20 * time.Second,
			RequestMinimumVersion:    3,
			Transports:               slices.Clone(transports),
			LateJobs:                 true,
			MinionRequestRate:        1000,
			MinionRequestBytes:       64 * MiB,
			MinionAnswerBytes:        128 * MiB,
		},
		SignIn: SignIn{CPUPercent: 50, RSABackend: RSAAuto, NewRate: 100, NewRatePerAddress: 50, MaxPendingKeys: 20_000,
			KeysMaxDelete: 10},
		Cluster: Cluster{
			Interface:          "0.0.0.0",
			PoolPort:           4520,
			IsolatedFilesystem: true,
			MaxVoters:          5, VoterTimeout: 10 * time.Minute, JobReplicas: 3, AloneLimit: 7 * 24 * time.Hour,
			CertificateAge: 30 * 24 * time.Hour,
		},
		Salt: Salt{
			Config:              "/etc/salt/master",
			MasterCommand:       "salt-master",
			UpstreamConnections: 64,
			ForwardTimeout:      60 * time.Second,
			StuckAfter:          15 * time.Second,
			NativeReturns:       true,
			NativeFiles:         FilesAuto,
			SpoolSize:           GiB,
		},
		Events: Events{Presence: PresenceAuto},
		Roots: Roots{
			Sync: RootsAuto, MaxDelete: 25, History: GiB,
			Ignore: []string{ // as fsync/scan has it
				".git", ".svn", ".hg", ".bzr", "*~", ".*.sw[a-p]", ".*.swx", "4913", ".#*", "#*#", ".nfs????*", ".DS_Store",
				".goutputstream-*",
			},
		},
		Paths: Paths{
			StateDir: "/var/lib/saltclusterd",
			RunDir:   "/run/saltclusterd",
		},
		Health: Health{
			Listen: "0.0.0.0:4580",
			Trusted: []netip.Prefix{
				netip.MustParsePrefix("127.0.0.0/8"),
				netip.MustParsePrefix("::1/128"),
			},
			Metrics: true, Page: true, AgentSlowStart: 30 * time.Second, TraceOneIn: 100,
		},
		Log: Log{Level: "info", Format: "text"},
	}
}

// fillDerived fills in what derives from other options.
func (c *Config) fillDerived(hostname string) {
	if c.ID == "" {
		c.ID = hostname
	}
	if c.Paths.AdminSocket == "" {
		c.Paths.AdminSocket = c.Paths.RunDir + "/admin.sock"
	}
	if c.Cluster.PKIDir == "" {
		c.Cluster.PKIDir = c.Paths.StateDir + "/pki"
	}
	if c.Edge.AllowClearCommands == nil {
		c.Edge.AllowClearCommands = map[string][]netip.Prefix{}
	}
	if c.Edge.Wall == nil {
		c.Edge.Wall = map[string]string{}
	}
}
