package haproxy

import "fmt"

// ownFiles is about what HAProxy opens beside its connections: what it listens on, checks, its threads.
const ownFiles = 16

// openFilesFor is how many HAProxy opens for so many connections, of which each is one to the minion and one to a node.
func openFilesFor(maxconn int) int { return 2*maxconn + ownFiles }

// Files compares maxconn of global with the files that HAProxy may open: by its configuration, and on its host, where 0
// is not known. haproxy -c does not: it is told when it starts.
func Files(c *Config, openFiles int) []Finding {
	need := openFilesFor(c.MaxConn)
	if c.MaxConn == 0 {
		return nil // it takes as many as it may
	}
	var found []Finding
	add := func(limit int, whose, next string) {
		if limit > 0 && limit < need {
			found = append(found, Finding{
				Level: Fail, What: fmt.Sprintf("maxconn %d of global needs %d open files, and %s is %d", c.MaxConn, need, whose,
					limit),
				Why: "HAProxy does not start (Cannot raise FD limit, FD limit too low); with no strict-limits it starts, but accepts no minions beyond that: " +
					"Minion did not return, Salt request timed out",
				Next: next,
			})
		}
	}
	add(c.UlimitN, "ulimit-n", "remove ulimit-n: HAProxy computes what it needs")
	add(c.FDHardLimit, "fd-hard-limit", fmt.Sprintf("fd-hard-limit %d, or remove it", need))
	add(openFiles, "what HAProxy may have on this host",
		fmt.Sprintf("systemctl edit haproxy: [Service] LimitNOFILE=%d, then systemctl restart haproxy; "+
			"beyond 1048576 also sysctl fs.nr_open", roundUp(need)))
	return found
}

// roundUp makes a limit of it that need not be changed with every minion.
func roundUp(n int) int {
	limit := 65536
	for limit < n {
		limit *= 2
	}
	return limit
}
