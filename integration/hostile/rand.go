package hostile

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// dice is the chance that a request follows from.
type dice struct {
	*rand.Rand
	seed uint64
	n    int // the request's number
	who  *scene

	spread bool // what is said here, others may say again: a job that a minion may publish, its arguments in their returns
}

// scene is whom and what the values are about. It does not change during a run.
type scene struct {
	seed    uint64
	own     string   // the hostile minion
	others  []string // minions that work
	nodes   []string // ids of nodes
	jids    []string // of jobs that were published
	outside string   // directory outside all roots, with a file named canary
	token   []byte   // another minion's proof that it is itself, as if it were stolen
	pub     string   // a public key that is not in use
}

const (
	canary    = "canary"
	ownPrefix = "hostile-"
	// unpublished is how jids begin of which no job was ever published.
	unpublished = "2099"
)

func (s *scene) dice(n int) *dice {
	return &dice{Rand: rand.New(rand.NewPCG(s.seed, uint64(n))), seed: s.seed, n: n, who: s}
}

// markPrefix is what all marks of a run begin with.
func markPrefix(seed uint64) string { return fmt.Sprintf("hx%08xn", uint32(seed)) }

// mark tells from which request a text comes. What others may rightly repeat has one that is not looked for.
func (d *dice) mark() string {
	if d.spread {
		return fmt.Sprintf("px%08xn%dz", uint32(d.seed), d.n)
	}
	return fmt.Sprintf("%s%dz", markPrefix(d.seed), d.n)
}

// marked finds the number of a request in a text that holds its mark.
func marked(seed uint64, text string) (n int, ok bool) {
	_, rest, found := strings.Cut(text, markPrefix(seed))
	if !found {
		return 0, false
	}
	_, err := fmt.Sscanf(rest, "%dz", &n)
	return n, err == nil
}

// in says whether something happens that does so once in many times.
func (d *dice) in(many int) bool { return d.IntN(many) == 0 }

func one[T any](d *dice, of ...T) T { return of[d.IntN(len(of))] }

// other is a minion that is not ours.
func (d *dice) other() string {
	if len(d.who.others) == 0 {
		return "nobody"
	}
	return one(d, d.who.others...)
}

// node is one of the cluster's, or none.
func (d *dice) node() string {
	if d.in(4) {
		return "nobody"
	}
	if len(d.who.nodes) == 0 {
		return "m1"
	}
	return one(d, d.who.nodes...)
}

// jid of a job that was published.
func (d *dice) jid() string {
	if len(d.who.jids) == 0 {
		return d.madeUpJid()
	}
	return one(d, d.who.jids...)
}

func (d *dice) madeUpJid() string {
	return fmt.Sprintf("%s%02d%02d120000%06d", unpublished, 1+d.IntN(12), 1+d.IntN(28), d.n%1_000_000)
}
