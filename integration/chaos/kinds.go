package chaos

import (
	"context"
	"time"
)

// Kind is a sort of fault.
type Kind struct {
	Name     string
	Scope    Scope
	Min, Max time.Duration // how long it is held
	Needs    need

	begin func(context.Context, *world, Step) error
	end   func(context.Context, *world, Step) error // nil: Restore does it
	// only the links between the first and the others are hit, the nodes stay whole
	cuts bool
	// minions behind HAProxy get what others publish meanwhile, a little later
	late bool
	// caught: and what the node itself publishes. Its saltclusterd is back while a command line that gave the job may
	// still wait.
	caught bool
}

// need is what a lab must have for a fault.
type need int

const (
	network need = 1 << iota
	disks
	seams
	clockSeam
)

const (
	short = 3 * time.Second
	mid   = 10 * time.Second
	long  = 20 * time.Second
)

// Kinds are all faults. What the begin functions broke and no end function mends, world.restore does: it starts what
// does not run, resumes what is paused, and heals every link and disk.
func Kinds() []Kind {
	return []Kind{
		{Name: "kill saltclusterd", Scope: one, Min: 0, Max: short, begin: killDaemons, late: true, caught: true},
		{Name: "kill salt-master", Scope: one, Min: 0, Max: mid, begin: killMasters, late: true},
		{Name: "kill both", Scope: one, Min: short, Max: mid, begin: killBoth, late: true},
		{Name: "pause saltclusterd", Scope: one, Min: short, Max: long, begin: pauseDaemons},
		{Name: "pause salt-master", Scope: one, Min: short, Max: long, begin: pauseMasters},
		{Name: "pause node", Scope: one, Min: short, Max: long, begin: pauseBoth},
		{Name: "restart saltclusterd", Scope: one, Min: 0, Max: short, begin: stopDaemons, late: true, caught: true},
		{Name: "drain", Scope: one, Min: mid, Max: long, begin: drainNode, end: undrainNode, late: true, caught: true},
		{Name: "power loss", Scope: one, Min: short, Max: mid, Needs: disks, begin: powerLoss, late: true},
		{Name: "power loss of all", Scope: all, Min: 0, Max: short, Needs: disks, begin: powerLoss},
		{Name: "isolated minority", Scope: minority, Min: mid, Max: long, Needs: network, begin: isolate, late: true},
		{Name: "one-way cut", Scope: pair, Min: mid, Max: long, Needs: network, begin: cutOneWay, cuts: true, late: true},
		{Name: "cut link", Scope: pair, Min: mid, Max: long, Needs: network, begin: cutBothWays, cuts: true, late: true},
		{Name: "flapping", Scope: one, Min: mid, Max: long, Needs: network, begin: flap},
		{Name: "30 % loss", Scope: one, Min: mid, Max: long, Needs: network, begin: lossy},
		{Name: "200 ms delay", Scope: one, Min: mid, Max: long, Needs: network, begin: slowLink},
		{Name: "clock +1 h", Scope: one, Min: mid, Max: long, Needs: clockSeam, begin: clockAhead},
		{Name: "slow fsync", Scope: one, Min: mid, Max: long, Needs: seams, begin: slowSync, late: true},
		{Name: "failing fsync", Scope: one, Min: short, Max: mid, Needs: seams, begin: failSync},
		{Name: "full disk", Scope: one, Min: mid, Max: long, Needs: disks, begin: fullDisk, late: true},
		{Name: "read-only disk", Scope: one, Min: short, Max: mid, Needs: disks, begin: brokenDisk, end: rebootNodes},
		{Name: "cold start of all", Scope: all, Min: 0, Max: short, begin: stopAll},
		{Name: "lost state directory", Scope: one, Min: short, Max: mid, begin: loseState, end: joinAnew},
		{Name: "damaged raft log", Scope: one, Min: 0, Max: short, begin: damageLog, end: joinAnew},
	}
}

// Select are the kinds whose needs are met and, when names are given, that are called so.
func Select(have need, names ...string) []Kind {
	var out []Kind
	for _, k := range Kinds() {
		wanted := len(names) == 0
		for _, n := range names {
			wanted = wanted || n == k.Name
		}
		if wanted && k.Needs&have == k.Needs {
			out = append(out, k)
		}
	}
	return out
}
