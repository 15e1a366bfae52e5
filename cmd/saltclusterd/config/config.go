package config

import (
	"net/netip"
	"time"
)

// Config is everything an operator can set. Zero values are not defaults: start
// from DefaultConfig or Load.
type Config struct {
	ID      string // of this node, in the cluster and in saltclusterctl; default: the host's name
	Edge    Edge
	SignIn  SignIn
	Cluster Cluster
	Events  Events
	Salt    Salt
	Roots   Roots
	Paths   Paths
	Health  Health
	Log     Log

	files  []string         // that were read, in order
	places map[string]place // of the options that were set
	// written are options as they stand in the files where the field has something else by now.
	written map[string]string
}

// place is where an option was set last.
type place struct {
	file   string
	line   int
	broken bool // what stands there could not be understood
}

// Edge is what minions see: the two ports and their limits.
type Edge struct {
	Interface                []string // addresses to bind; empty: every address of the host but loopback
	PublishPort              int
	RetPort                  int
	MaxConnections           int // per port
	MaxConnectionsPerAddress int // per port
	MaxRequestSize           Size
	MaxRequestMemory         Size // incomplete and unanswered requests, all connections
	MemoryLimit              Size // of the process; 0: none
	MaxInFlight              int  // requests without an answer, all connections
	MaxInFlightPerConnection int
	HandshakeTimeout         time.Duration
	PubQueueMessages         int // per subscriber
	PubQueueBytes            Size
	RotateInterval           time.Duration // age of an AES key at which another takes its place
	RotateWindow             time.Duration // over which subscribers move to a new AES key
	DrainAnnounce            time.Duration // between turning red for load balancers and the first minion let go
	DrainTime                time.Duration // over which subscribers are let go
	RequestMinimumVersion    int           // payload version, 0..3
	Transports               []string      // what minions may speak
	RequireTLS               bool          // minions without TLS are refused
	LateJobs                 bool          // minions that were between two connections get what was published meanwhile
	Heartbeat                time.Duration // between two PINGs to a subscriber
	HeartbeatTimeout         time.Duration // for anything to come back
	ProxyProtocol            bool          // load balancers say for whom they connect
	ProxyProtocolTrusted     []netip.Prefix
	AllowClearCommands       map[string][]netip.Prefix
	Wall                     map[string]string // modes of rules, by name (sidecar/wall)
	MinionRequestRate        int               // per second and minion; 0: no limit
	MinionRequestBytes       Size              // the same in bytes
	MinionAnswerBytes        Size              // of what it is answered, per second
	MinionRequestsAtOnce     int               // at the local master, of one minion; 0: by its workers
}

// SignIn bounds what minions that sign in may cost.
type SignIn struct {
	CPUPercent        int // of the CPUs, at most
	RSABackend        string
	NewRate           int // keys that are not known yet, per second
	NewRatePerAddress int
	MaxPendingKeys    int
	KeysMaxDelete     int // percent of the accepted keys; more waits for a decision
}

// Cluster is who belongs together.
type Cluster struct {
	ID                 string
	Peers              []string // host or host:port
	Secret             Secret   // resolved: from the file, secret file or credential
	SecretFile         string
	JoinTokenFile      string
	joinToken          *string // from the file or the credential; fmt prints its address
	PubFingerprint     string  // SHA-256 in lower-case hex, or empty
	PKIDir             string
	Interface          string // address the peer port binds
	PoolPort           int
	Advertise          string // IP address, maybe with :port, that peers dial; empty: see PeerAdvertise
	IsolatedFilesystem bool
	Witness            bool
	MaxVoters          int
	JobReplicas        int           // nodes that keep a job; 1: only the one that published it
	VoterTimeout       time.Duration // of a dead voter, before one in reserve gets its vote
	CertificateAge     time.Duration // at which a node renews its own; 0: never
	AloneLimit         time.Duration // of serving from memory without a majority after a restart; 0: none
}

// Events is where events of minions fire.
type Events struct {
	Policy []TagRule // the first that matches decides
	Mirror []string  // tags that the other masters get to see

	Presence string // PresenceAuto, PresenceOn, PresenceOff
}

// The values of cluster_presence_events.
const (
	PresenceAuto = "auto"
	PresenceOn   = "on"
	PresenceOff  = "off"
)

// Salt is the stock master beside us.
type Salt struct {
	Config              string   // its main configuration file
	MasterCommand       string   // asked for --version
	RestartCommand      []string // run when the master must read a new identity; empty: an operator does it
	UpstreamConnections int
	StuckAfter          time.Duration // without any reply: no worker works
	ForwardTimeout      time.Duration
	NativeReturns       bool   // returns are written to the job cache without the master where its configuration allows it
	NativeFiles         string // FilesAuto, FilesOff
	SpoolSize           Size   // of the journal of returns
}

// The values of cluster_native_files.
const (
	FilesAuto = "auto"
	FilesOff  = "off"
)

// Roots is how file_roots and pillar_roots are kept the same on all nodes.
type Roots struct {
	Sync      string // RootsAuto, RootsManual, RootsOff
	MaxDelete int    // percent of a directory's files; more waits for a confirmation
	Ignore    []string
	History   Size // of replaced content
}

// Paths are our own places on disk.
type Paths struct {
	StateDir    string
	RunDir      string
	AdminSocket string // default: RunDir/admin.sock
	AdminGroup  string // whose members may use the socket, beside root and our own user
}

// Health is what load balancers and monitoring ask.
type Health struct {
	Listen      string // HTTP; empty: off
	AgentListen string // HAProxy agent-check; empty: off
	Trusted     []netip.Prefix
	Metrics     bool
	Page        bool // the status page
	// AgentSlowStart is the time over which the agent-check asks for ever more after a recovery.
	AgentSlowStart time.Duration

	TraceEndpoint string // of an OpenTelemetry collector; empty: nothing is traced
	TraceOneIn    int    // requests
	TraceIDs      bool   // spans name minions
}

// Log is how we talk.
type Log struct {
	Level  string // debug, info, warning, error
	Format string // text, json
}

// Size is a number of bytes.
type Size int64

// Units of a Size.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
)
