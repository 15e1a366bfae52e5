package upstream

import "strings"

// turns are the calls that wait for a connection. Those of one sender stand in one line; lines take turns, so that a
// sender with a thousand calls costs the others one call's time each round. Calls without a sender have a line each.
// The line of a sender who has as many calls under way as he may is parked: it has no turn until one of them is over.
type turns struct {
	most        int              // calls that one sender may have under way; zero: any number
	mostWaiting int              // the same of those that are called Waiting
	parked      func()           // hears of each line that is; may be nil
	busy        map[string]int   // calls under way of those senders that have any; empty without a limit
	lines       map[string]*line // of known senders
	first, last *line            // whose turn is next, and last
	count       int              // of lines that have turns
	len         int              // of calls
	ready       int              // of calls whose line is not parked
	ranks       ranks
}

// line is what one sender waits for, in the order of its calls.
type line struct {
	from        string
	first, last *call
	len         int
	parked      bool
	prev, next  *line
	peers       [2]*line // before and after it in its rank
}

// pushCall puts a call at the end of its sender's line.
func (t *turns) pushCall(ca *call) {
	l := t.lines[ca.from]
	if l == nil {
		l = &line{from: ca.from}
		if ca.from != "" {
			if t.lines == nil {
				t.lines = map[string]*line{}
			}
			t.lines[ca.from] = l
		}
		if t.isFull(ca.from) {
			t.parkLine(l)
		} else {
			t.appendLine(l)
		}
	}
	ca.stage, ca.line, ca.prev, ca.next = queued, l, l.last, nil
	if l.last != nil {
		l.last.next = ca
	} else {
		l.first = ca
	}
	l.last = ca
	t.ranks.moveLine(l, l.len+1)
	t.len++
	if !l.parked {
		t.ready++
	}
}

// Waiting is what the name of a sender begins with whose calls have a worker of the master's wait: PerWaiter bounds
// those, and PerSender others.
const Waiting = "\x00"

// Long is what the name of a sender begins with whose calls run code of the site's own, which takes as long as it
// takes: such a call may take longer than ReqConfig.Timeout, and a master whose workers are all busy with such calls is
// not taken for stuck before BusyAtMost.
const Long = "\x01"

// limitOf is how many calls a sender may have under way; zero: any number.
func (t *turns) limitOf(from string) int {
	switch {
	case from == "":
		return 0
	case strings.HasPrefix(from, Waiting):
		return t.mostWaiting
	}
	return t.most
}

// isFull says whether a sender has as many calls under way as he may.
func (t *turns) isFull(from string) bool {
	n := t.limitOf(from)
	return n > 0 && t.busy[from] >= n
}

// beginCall notes that a call of a sender is under way; it counts, says counted, until endCall.
func (t *turns) beginCall(from string) (counted bool) {
	if t.limitOf(from) == 0 {
		return false
	}
	if t.busy == nil {
		t.busy = map[string]int{}
	}
	t.busy[from]++
	if l := t.lines[from]; l != nil && !l.parked && t.isFull(from) {
		t.detachLine(l)
		t.parkLine(l)
	}
	return true
}

// endCall notes that a call which beginCall has counted is over.
func (t *turns) endCall(from string) {
	if t.busy[from]--; t.busy[from] <= 0 {
		delete(t.busy, from)
	}
	if l := t.lines[from]; l != nil && l.parked && !t.isFull(from) {
		t.unparkLine(l)
	}
}

func (t *turns) parkLine(l *line) {
	l.parked = true
	t.ready -= l.len
	if t.parked != nil {
		t.parked()
	}
}

func (t *turns) unparkLine(l *line) {
	l.parked = false
	t.ready += l.len
	t.appendLine(l)
}

// popCall takes the call whose turn it is; nil when none waits that may go.
func (t *turns) popCall() *call {
	l := t.first
	if l == nil {
		return nil
	}
	ca := l.first
	t.removeCall(ca)
	if l.len > 0 && t.last != l {
		t.detachLine(l)
		t.appendLine(l)
	}
	return ca
}

// removeCall takes a call out of its line, wherever it stands.
func (t *turns) removeCall(ca *call) {
	l := ca.line
	if ca.prev != nil {
		ca.prev.next = ca.next
	} else {
		l.first = ca.next
	}
	if ca.next != nil {
		ca.next.prev = ca.prev
	} else {
		l.last = ca.prev
	}
	ca.line, ca.prev, ca.next = nil, nil, nil
	t.ranks.moveLine(l, l.len-1)
	t.len--
	if !l.parked {
		t.ready--
	}
	if l.len == 0 {
		if !l.parked {
			t.detachLine(l)
		}
		delete(t.lines, l.from)
	}
}

// makeRoom takes the youngest call out of the longest line, when that is longer than the line of from would be with one
// more; nil: from has to be refused itself.
func (t *turns) makeRoom(from string) *call {
	mine := 0
	if l := t.lines[from]; l != nil {
		mine = l.len
	}
	longest := t.ranks.longestLine()
	if longest == nil || longest.len <= mine+1 {
		return nil
	}
	ca := longest.last
	t.removeCall(ca)
	return ca
}

// takeAll empties the lines; the calls are over.
func (t *turns) takeAll() []*call {
	all := make([]*call, 0, t.len)
	for _, l := range t.lines {
		if l.parked {
			t.unparkLine(l)
		}
	}
	for ca := t.popCall(); ca != nil; ca = t.popCall() {
		ca.stage = over
		all = append(all, ca)
	}
	return all
}

func (t *turns) appendLine(l *line) {
	l.prev, l.next = t.last, nil
	if t.last != nil {
		t.last.next = l
	} else {
		t.first = l
	}
	t.last = l
	t.count++
}

func (t *turns) detachLine(l *line) {
	if l.prev != nil {
		l.prev.next = l.next
	} else {
		t.first = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	} else {
		t.last = l.prev
	}
	l.prev, l.next = nil, nil
	t.count--
}
