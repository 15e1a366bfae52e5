package keydir

import "time"

// diskState is what a look found of one id.
type diskState struct {
	key    finding
	denied finding
}

// finding is what was found of a subject.
type finding struct {
	entry
	garbage  bool      // something other than a whole key
	twice    bool      // in several directories
	temp     bool      // perhaps an unfinished file of 3008
	modified time.Time // of the file that counts
}

func (s diskState) findingFor(sub subject) finding {
	if sub.denied {
		return s.denied
	}
	return s.key
}

func (s diskState) isEmpty() bool { return s == diskState{} }
