package upstream

// ranks are the lines with more than one call by their length, so that the longest is found at once however many there
// are. Lengths change by one, which keeps the highest rank known.
type ranks struct {
	firsts  []*line // of the lines of each length
	highest int     // length with a line; below 2: none has
}

// longestLine is a line that none is longer than; nil when none has more than one call.
func (r *ranks) longestLine() *line {
	if r.highest < 2 {
		return nil
	}
	return r.firsts[r.highest]
}

// moveLine gives a line a length that is longer or shorter by one.
func (r *ranks) moveLine(l *line, n int) {
	if l.len >= 2 {
		r.removeLine(l)
	}
	was := l.len
	if l.len = n; n >= 2 {
		r.addLine(l)
	}
	switch {
	case n > r.highest:
		r.highest = n
	case was == r.highest && (was < 2 || r.firsts[was] == nil):
		r.highest = n
	}
}

func (r *ranks) addLine(l *line) {
	for len(r.firsts) <= l.len {
		r.firsts = append(r.firsts, nil)
	}
	first := r.firsts[l.len]
	if l.peers = [2]*line{nil, first}; first != nil {
		first.peers[0] = l
	}
	r.firsts[l.len] = l
}

func (r *ranks) removeLine(l *line) {
	before, after := l.peers[0], l.peers[1]
	if before != nil {
		before.peers[1] = after
	} else {
		r.firsts[l.len] = after
	}
	if after != nil {
		after.peers[0] = before
	}
	l.peers = [2]*line{}
}
