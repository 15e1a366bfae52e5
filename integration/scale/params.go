package scale

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Costs are what single steps cost: CPU time where nothing else is said, on one core of the machine of their source.
// Costs() has the measured ones, with where each comes from.
type Costs struct {
	// A publication.
	Intake, Fan, Seal, Deliver time.Duration
	// A request of a minion, and what a return is beyond that.
	Request, Reply, Append, RelayOut, RelayIn, RelayBack, Duplicate time.Duration
	// The job cache, the bus, the replicas.
	KiB                                                  time.Duration
	Apply, Fire, BusEvent, BusEvent3008, CopyOut, CopyIn time.Duration
	// Sign-ins and connections.
	SignIn, Connect, AuthEvent, AuthEvent3008, Python time.Duration
	// Keys.
	RaftApply, KeyFile time.Duration
	// The proxy, which is not ours.
	Proxy, ProxyConnect time.Duration

	// Not CPU.
	Fsync     time.Duration // of a file that was written to, alone
	SyncFile  time.Duration // what a file adds to a sync of the whole file system
	SyncRet   time.Duration // and what a return adds, which is a directory with a file
	DiskMiB   time.Duration // written in one go
	RaftStore time.Duration // an entry in raft's log

	// Bytes on the wire, without Ethernet, IP and TCP.
	PubBytes, ReturnBytes, AckBytes, RelayBytes, CopyBytes, SignInBytes, SignInReply int

	// Bytes of resident memory, of saltclusterd without minions and of a connection, and what jobs of a minion leave; of
	// HAProxy and of an idle connection through it.
	MemBase, MemConn, MemJob, MemProxyBase, MemProxy int
}

// row is a cost with its source.
type row struct {
	value any // *time.Duration or *int
	name  string
	is    any
	what  string
	from  string
}

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// table is the one place in which the costs stand.
func (c *Costs) table() []row {
	return []row{
		{&c.Intake, "Intake", 60 * us, "a publication of the local master: read, opened, noted",
			"go test -bench Crypticle ./sidecar/saltcrypt, and waking up"},
		{&c.Fan, "Fan", 20 * us, "the same sent to one peer, or read from one",
			"go test -bench Relay ./sidecar/relay: half of a request"},
		{&c.Seal, "Seal", 1100 * us, "sealed and signed for the own subscribers: an RSA private operation",
			"go test -bench RSA2048/Sign ./sidecar/saltcrypt"},
		{&c.Deliver, "Deliver", 5 * us, "written to one subscriber, alone",
			"go test -bench Deliver ./sidecar/edge: 0.5 µs in bursts; one write(2) otherwise"},
		{&c.Request, "Request", 25 * us, "a request of a minion: read, opened, judged, routed",
			"go test -bench . ./sidecar/edge ./sidecar/saltwire ./sidecar/guard ./sidecar/router"},
		{&c.Reply, "Reply", 8 * us, "an answer: sealed, written", "go test -bench . ./sidecar/saltcrypt ./sidecar/edge"},
		{&c.Append, "Append", 8 * us, "a return: planned, put into the journal",
			"go test -bench . ./sidecar/spool ./sidecar/jobcache"},
		{&c.RelayOut, "RelayOut", 22 * us, "a request to another node", "go test -bench Relay ./sidecar/relay"},
		{&c.RelayIn, "RelayIn", 40 * us, "a request of another node: read, opened, judged",
			"go test -bench Relay ./sidecar/relay"},
		{&c.RelayBack, "RelayBack", 20 * us, "the other node's answer, written to the minion",
			"go test -bench Relay ./sidecar/relay"},
		{&c.Duplicate, "Duplicate", 8 * us, "a return that was kept elsewhere, and is here already", "as Append"},
		{&c.KiB, "KiB", 4 * us, "each KiB of a return beyond test.ping's, wherever it is read, sent or written",
			"go test -bench Crypticle ./sidecar/saltcrypt (1.3 to 2.7 µs to open one), and an estimate of copies of it"},
		{&c.Apply, "Apply", 35 * us, "a return into the job cache",
			"go test -bench Apply ./sidecar/jobcache (21 µs on tmpfs, 78 on ext4)"},
		{&c.Fire, "Fire", 5 * us, "an event handed to the master",
			"a bare master with returns that no job asked for, 2026-11-25"},
		{&c.BusEvent, "BusEvent", 60 * us, "an event: the master's own part, 3006",
			"a bare 3006 master, 2026-11-25; 74 µs in clusters with 300 minions"},
		{&c.BusEvent3008, "BusEvent3008", 480 * us, "the same, 3008",
			"a bare master with returns that no job asked for, 2026-11-25"},
		{&c.CopyOut, "CopyOut", 3 * us, "a return on its way to a replica", "go test -bench Return ./fsync/jobs"},
		{&c.CopyIn, "CopyIn", 12 * us, "a return written by a replica",
			"go test -bench Return ./fsync/jobs (10 µs on tmpfs, 60 on ext4)"},
		{&c.SignIn, "SignIn", 2040 * us, "a sign-in of an accepted key: two RSA private operations and three encryptions",
			"go test -bench SignIn ./sidecar/signin"},
		{&c.Connect, "Connect", 120 * us, "a new connection of a minion, shaken hands",
			"make bench ARGS='-what signin': what is neither RSA nor the master"},
		{&c.AuthEvent, "AuthEvent", 90 * us, "salt/auth on a 3006 master's bus", "make bench ARGS='-what signin'"},
		{&c.AuthEvent3008, "AuthEvent3008", 440 * us, "the same, 3008", "make bench ARGS='-what signin'"},
		{&c.Python, "Python", 2000 * us,
			"a request that a master's Python answers: _register_resources of a 3008 minion that starts", "a bare 3008 master with events of minions, 2026-11-27"},
		{&c.ProxyConnect, "ProxyConnect", 60 * us, "a new connection through HAProxy", "an estimate: four messages"},
		{&c.SignInBytes, "SignInBytes", 870, "a sign-in", "sidecar/saltwire/testdata/golden: recorded from stock Salt"},
		{&c.SignInReply, "SignInReply", 1970, "and its reply", "sidecar/saltwire/testdata/golden: recorded from stock Salt"},
		{&c.RaftApply, "RaftApply", 50 * us, "an entry applied to the state", "go test -bench Propose ./consensus"},
		{&c.RaftStore, "RaftStore", 2 * ms, "an entry in raft's log: two syncs of bbolt; not CPU", "twice Fsync"},
		{&c.KeyFile, "KeyFile", 150 * us, "a key file written by a round",
			"an estimate: a file made, checked, renamed, looked at"},
		{&c.Proxy, "Proxy", 15 * us, "a message through HAProxy", "a real cluster with 300 minions, 2026-11-26: 14.5 µs"},
		{&c.Fsync, "Fsync", 1 * ms, "a file that was written to, alone; not CPU",
			"go test -bench Disk ./integration/scale (ext4 on a virtual disk: 0.2 ms at rest, 2.4 while others use it)"},
		{&c.SyncFile, "SyncFile", 20 * us, "what a file adds to a sync of the file system; not CPU",
			"as Fsync (15 to 25 µs with its directory)"},
		{&c.SyncRet, "SyncRet", 20 * us, "what a return adds to it, a directory with a file; not CPU",
			"as Fsync (15 to 25 µs)"},
		{&c.DiskMiB, "DiskMiB", 2500 * us, "a MiB written in one go; not CPU", "as Fsync"},
		{&c.MemBase, "MemBase", 29 << 20, "of memory: saltclusterd with no minion connected", "make bench ARGS='-what memory'"},
		{&c.MemConn, "MemConn", 6400, "of memory: a connection of a minion; the kernel needs 3.6 KiB besides",
			"make bench ARGS='-what memory' (4505)"},
		{&c.MemJob, "MemJob", 2 << 10, "of memory: what jobs leave behind, for each minion",
			"real clusters of 500 and 2,000 minions, 2026-11-27: 1.9 KiB"},
		{&c.MemProxyBase, "MemProxyBase", 20 << 20, "of memory: HAProxy's with no minion connected",
			"real clusters of 1,000 and 5,000 minions, 2026-11-27: 37 and 63 MiB"},
		{&c.MemProxy, "MemProxy", 3 << 10, "of memory: an idle connection through HAProxy", "as MemProxyBase"},
		{&c.PubBytes, "PubBytes", 540, "a publication of test.ping",
			"sidecar/saltwire/testdata/golden: recorded from stock Salt"},
		{&c.ReturnBytes, "ReturnBytes", 611, "a return of test.ping", "integration/herd: TestSizesOfTheModel"},
		{&c.AckBytes, "AckBytes", 103, "its acknowledgement", "integration/herd: TestSizesOfTheModel"},
		{&c.RelayBytes, "RelayBytes", 120, "what HTTP/2 and TLS add to a relayed message",
			"an estimate: frames and headers of HTTP/2, records of TLS"},
		{&c.CopyBytes, "CopyBytes", 60, "a return of test.ping in a batch for a replica",
			"fsync/jobs/wire.go: job, minion, times, lengths and the return itself"},
	}
}

// JobFactors are how much more a job needs of saltclusterd than the table says, whose figures are of single steps that
// have warm caches and wake nothing else: docs/contributing/benchmarks.md has 0.24 ms for each of 5,000 minions,
// less the master's 0.06, where the table has 0.086.
var JobFactors = Factors{Publisher: 2.1, Others: 2.1}

// MeasuredCosts returns the costs of the table.
func MeasuredCosts() *Costs {
	c := &Costs{}
	for _, r := range c.table() {
		reflect.ValueOf(r.value).Elem().Set(reflect.ValueOf(r.is))
	}
	return c
}

// Table is the costs as markdown.
func (c *Costs) Table() string {
	var b strings.Builder
	b.WriteString("| cost | value | what | measured by |\n|---|---|---|---|\n")
	for _, r := range c.table() {
		value := fmt.Sprint(reflect.ValueOf(r.value).Elem())
		if _, bytes := r.is.(int); bytes {
			value += " B"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.name, value, r.what, r.from)
	}
	return b.String()
}
