package edge

import (
	"errors"
	"fmt"

	"saltclusterd/sidecar/handover"
)

// State is an edge's connections written down: a record, and their descriptors
// in the order in which the record tells of them. The descriptors stay the
// edge's; they are good until Thaw or Hand.
type State struct {
	Record      []byte
	Descriptors []int
}

// errDescriptors says that a record and its descriptors do not belong together.
var errDescriptors = errors.New("not as many descriptors as connections")

// sides tell the records of the two edges apart.
const (
	pubSide = 1
	reqSide = 2
)

// beginRecord starts the record of a side.
func beginRecord(side uint64, conns int) *handover.Encoder {
	e := &handover.Encoder{}
	e.Uint(side)
	e.Int(conns)
	return e
}

// openRecord checks side and number of connections.
func openRecord(side uint64, s State) (*handover.Decoder, int, error) {
	d := handover.NewDecoder(s.Record)
	if d.Uint() != side {
		d.Fail("record of another edge")
	}
	n := d.Count()
	if err := d.Err(); err != nil {
		return nil, 0, err
	}
	if n != len(s.Descriptors) {
		return nil, 0, fmt.Errorf("%d for %d: %w", len(s.Descriptors), n, errDescriptors)
	}
	return d, n, nil
}
