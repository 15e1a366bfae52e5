package edge

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/zmtp"
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

// encode writes what both kinds of connections have in common. Times are
// written as spans until now: clocks of two processes begin differently.
func (l *link) encode(e *handover.Encoder, now int64) {
	e.Addr(l.remote)
	e.Bool(l.met)
	e.Duration(time.Duration(now - l.heard.Load()))
	l.dec.State().Encode(e)
}

// decode is encode backwards; it leaves the descriptor alone.
func (l *link) decode(d *handover.Decoder, fd int, now int64, limits *zmtp.Limits, f *frost) error {
	l.fd, l.frost, l.done = fd, f, make(chan struct{})
	l.remote = d.Addr()
	l.counted = l.remote.Addr()
	l.met = d.Bool()
	l.heard.Store(now - int64(d.Duration()))
	s := zmtp.DecodeState(d)
	if err := d.Err(); err != nil {
		return err
	}
	var err error
	if l.dec, err = zmtp.ResumeDecoder(limits, s); err != nil {
		return err
	}
	if l.met != s.Ready || s.Ready && s.Stage == 0 || l.remote.Addr() == (netip.Addr{}) {
		return fmt.Errorf("handshake of %s: %w", l.remote, handover.ErrState)
	}
	return nil
}

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
