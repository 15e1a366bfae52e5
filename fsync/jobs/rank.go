package jobs

import (
	"github.com/tinylib/msgp/msgp"
)

// Ranks of head files.
const (
	rankPoor = 1
	rankGood = 2
)

// rankOf tells what a head file is worth against another of that name.
func rankOf(name string, content []byte) byte {
	switch {
	case name == loadFile && (len(content) < 2 || keptFromReturn(content)):
		return rankPoor
	case name != loadFile && name != noCacheFile && len(content) < 2: // no minions
		return rankPoor
	}
	return rankGood
}

// keptFromReturn says whether a load is what a return told of its job, for want of what was published. A runner's is
// made that way too, but is the only one of its job.
func keptFromReturn(load []byte) bool {
	if msgp.NextType(load) != msgp.MapType {
		return true
	}
	n, rest, err := msgp.ReadMapHeaderBytes(load)
	for ; n > 0 && err == nil; n-- {
		var key []byte
		if msgp.NextType(rest) == msgp.StrType {
			key, rest, err = msgp.ReadStringZC(rest)
		} else {
			rest, err = msgp.Skip(rest)
		}
		if err == nil && string(key) == "return" {
			return true
		}
		if err == nil {
			rest, err = msgp.Skip(rest)
		}
	}
	return err != nil
}
