package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/zmtp"
	"saltclusterd/signal"
)

// errHanded ends a subscription that another process has taken over.
var errHanded = errors.New("subscription was handed over")

// ErrNotPaused says that a subscription is written down which does not stand still.
var ErrNotPaused = errors.New("upstream: the subscription is not paused")

// pause makes a subscription stand still between two bytes, so that another process can continue it.
type pause struct {
	ended chan struct{} // closed when the client's loop has ended

	mu     *sync.Mutex
	state  *pauseState
	parked chan struct{} // gets a token when the reader has parked
}

type pauseState struct {
	z      *zmtp.Client  // being read
	taken  *zmtp.Client  // of another process, to begin with
	end    chan struct{} // of the pause under way
	still  *zmtp.Client  // who has parked
	handed bool
}

func newPause() pause {
	return pause{ended: make(chan struct{}), mu: new(sync.Mutex), state: new(pauseState), parked: make(chan struct{}, 1)}
}

// setReading notes which connection is read, nil: none. It tells whether a pause is under way.
func (p *pause) setReading(z *zmtp.Client) (paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.z = z
	return p.state.end != nil
}

// takeResumed returns the connection that was taken over, once.
func (p *pause) takeResumed() *zmtp.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	z := p.state.taken
	p.state.taken = nil
	return z
}

// waitPaused waits for the end of the pause.
func (p *pause) waitPaused(ctx context.Context, z *zmtp.Client) error {
	p.mu.Lock()
	end := p.state.end
	p.state.still = z
	p.mu.Unlock()
	if end != nil {
		signal.Send(p.parked)
		select {
		case <-end:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.still = nil
	if p.state.handed {
		return errHanded
	}
	if p.state.end == nil { // else the next pause has begun
		z.Proceed()
	}
	return ctx.Err()
}

// Pause stops reading; what the master publishes waits in the socket. It returns when the last OnMessage has, or with
// an error; then everything continues.
func (c *SubClient) Pause(ctx context.Context) error {
	p := &c.pause
	p.mu.Lock()
	if p.state.end != nil {
		p.mu.Unlock()
		return ErrNotPaused
	}
	select {
	case <-p.parked: // of an earlier pause
	default:
	}
	p.state.end = make(chan struct{})
	z := p.state.z
	if z != nil {
		z.Interrupt()
	}
	p.mu.Unlock()
	if z == nil { // not subscribed: nothing to hand over
		return nil
	}
	select {
	case <-p.parked:
		return nil
	case <-p.ended:
		return nil
	case <-ctx.Done():
		c.Unpause()
		return fmt.Errorf("pause the subscription: %w", context.Cause(ctx))
	}
}

// Unpause resumes the subscription.
func (c *SubClient) Unpause() { c.pause.endPause(false) }

// Hand ends the client without a word to the master: another process continues with its connection.
func (c *SubClient) Hand() { c.pause.endPause(true) }

func (p *pause) endPause(handed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state.end == nil {
		return
	}
	p.state.handed = handed
	close(p.state.end)
	p.state.end = nil
}

// Export writes a paused subscription down; the descriptor is -1 when there is none.
func (c *SubClient) Export() (record []byte, fd int, err error) {
	p := &c.pause
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state.end == nil {
		return nil, -1, ErrNotPaused
	}
	z := p.state.still
	if z == nil {
		return nil, -1, nil
	}
	sc, ok := z.Conn().(syscall.Conn)
	if !ok {
		return nil, -1, nil
	}
	raw, err := sc.SyscallConn()
	if err == nil {
		err = raw.Control(func(d uintptr) { fd = int(d) })
	}
	if err != nil {
		return nil, -1, fmt.Errorf("hand the subscription over: %w", err)
	}
	e := &handover.Encoder{}
	encodeClient(e, z.State())
	return e.Record(), fd, nil
}

// Import continues the subscription of another process; to be called before Open. The descriptor is the client's.
func (c *SubClient) Import(record []byte, fd int) error {
	f := os.NewFile(uintptr(fd), "subscription")
	conn, err := net.FileConn(f)
	_ = f.Close()
	if err != nil {
		return fmt.Errorf("take the subscription over: %w", err)
	}
	z, err := decodeClient(record, conn, c.clientOptions())
	if err != nil {
		_ = conn.Close()
		return fmt.Errorf("take the subscription over: %w", err)
	}
	c.pause.state.taken = z
	c.isUp.Store(true)
	return nil
}

func encodeClient(e *handover.Encoder, s zmtp.ClientState) {
	s.Decoder.Encode(e)
	e.Bytes(s.Rest)
	e.Int(len(s.Parts))
	for _, p := range s.Parts {
		e.Bytes(p)
	}
}

func decodeClient(record []byte, conn net.Conn, o zmtp.ClientOptions) (*zmtp.Client, error) {
	d := handover.NewDecoder(record)
	s := zmtp.ClientState{Decoder: zmtp.DecodeState(d), Rest: d.Bytes()}
	for range d.Count() {
		s.Parts = append(s.Parts, d.Bytes())
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	return zmtp.ResumeClient(conn, s, o)
}
