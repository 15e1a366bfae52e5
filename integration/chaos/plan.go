package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Step is one fault.
type Step struct {
	Kind  string
	Nodes []int // indexes; what they mean is the kind's business, the first is the one that is hit
	Hold  time.Duration
}

// String names nodes as the lab does.
func (s Step) String() string {
	var names []string
	for _, n := range s.Nodes {
		names = append(names, fmt.Sprint("m", n+1))
	}
	return fmt.Sprintf("%s of %s for %s", s.Kind, strings.Join(names, ","), s.Hold)
}

// Plan makes n steps for a cluster of that many nodes. Kinds come in shuffled rounds, so that none is forgotten for
// long. The same seed gives the same steps.
func Plan(seed uint64, nodes, n int, kinds []Kind) []Step {
	r := rand.New(rand.NewPCG(seed, 0x5a17))
	var steps []Step
	for len(steps) < n {
		for _, i := range r.Perm(len(kinds)) {
			k := kinds[i]
			steps = append(steps, Step{Kind: k.Name, Nodes: k.Scope.pick(r, nodes), Hold: holdOf(r, k)})
		}
	}
	return steps[:n]
}

func holdOf(r *rand.Rand, k Kind) time.Duration {
	return (k.Min + time.Duration(r.Int64N(int64(k.Max-k.Min+1)))).Truncate(100 * time.Millisecond)
}

// Scope says which nodes a fault hits.
type Scope int

// Scopes.
const (
	one      Scope = iota
	minority       // less than half
	pair           // two
	all
)

func (s Scope) pick(r *rand.Rand, nodes int) []int {
	n := 1
	switch s {
	case minority:
		n = 1 + r.IntN(max((nodes-1)/2, 1))
	case pair:
		n = min(2, nodes)
	case all:
		n = nodes
	}
	picked := r.Perm(nodes)[:n]
	if s == all {
		slices.Sort(picked)
	}
	return picked
}
