package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Part is opened and closed.
type Part interface {
	io.Closer
	Open(context.Context) error
}

// Phase says when a process that takes over from another one opens a part. One that does not opens all in the order of
// their list.
type Phase int

const (
	// Shared are the parts that two processes can have open. They are opened before the old process hands over.
	Shared Phase = iota
	// Outgoing and Incoming have the connections of the old process: what publications go out through is open before they
	// come in.
	Outgoing
	Incoming
	// Exclusive are the parts that only one process can have open, because of what they keep on disk: an old process
	// closes them before the new one opens them. Until then, callers that need them have to wait, or do without: a
	// return goes to the journal of another node, or is not acknowledged.
	Exclusive
)

// Listed is a part with its place in a list.
type Listed struct {
	Name string
	Part
	Phase Phase
}

// Parts are the parts of a service. What hands something to another part stands after it, and what everything else
// needs comes first.
type Parts struct {
	list      []Listed
	closePart func(io.Closer) error

	mu   sync.Mutex
	open map[Part]bool
}

// NewParts returns parts that are closed. closePart closes one of them.
func NewParts(closePart func(io.Closer) error, list []Listed) *Parts {
	return &Parts{list: list, closePart: closePart, open: map[Part]bool{}}
}

// Open opens those parts that are chosen, in the order of their list.
func (p *Parts) Open(ctx context.Context, chosen func(Listed) bool) error {
	return p.OpenBy(ctx, chosen, func(ctx context.Context, part Part) error { return part.Open(ctx) })
}

// OpenBy is Open with a function that opens one part.
func (p *Parts) OpenBy(ctx context.Context, chosen func(Listed) bool, open func(context.Context, Part) error) error {
	for _, part := range p.list {
		if !chosen(part) {
			continue
		}
		if err := open(ctx, part.Part); err != nil {
			return fmt.Errorf("open %s: %w", part.Name, err)
		}
		p.mu.Lock()
		p.open[part.Part] = true
		p.mu.Unlock()
	}
	return nil
}

// OpenPhase opens the parts of a phase.
func (p *Parts) OpenPhase(ctx context.Context, of Phase) error {
	return p.Open(ctx, func(part Listed) bool { return part.Phase == of })
}

// Close closes those parts that are open, backwards.
func (p *Parts) Close() error {
	var errs []error
	for _, part := range slices.Backward(p.list) {
		errs = append(errs, p.closeIfOpen(part))
	}
	return errors.Join(errs...)
}

// ClosePhase closes the parts of a phase that are open, all at the same time.
func (p *Parts) ClosePhase(of Phase) error {
	var g errgroup.Group
	for _, part := range p.list {
		if part.Phase == of {
			g.Go(func() error { return p.closeIfOpen(part) })
		}
	}
	return g.Wait()
}

func (p *Parts) closeIfOpen(part Listed) error {
	p.mu.Lock()
	open := p.open[part.Part]
	delete(p.open, part.Part)
	p.mu.Unlock()
	if !open {
		return nil
	}
	return p.closePart(part.Part)
}

// Funcs is a part made of functions, each of which may be nil.
type Funcs struct {
	OnOpen  func(context.Context) error
	OnClose func() error
}

// Open implements Part.
func (f *Funcs) Open(ctx context.Context) error {
	if f.OnOpen == nil {
		return nil
	}
	return f.OnOpen(ctx)
}

// Close implements Part.
func (f *Funcs) Close() error {
	if f.OnClose == nil {
		return nil
	}
	return f.OnClose()
}

// Background is a part that runs a function while it is open. Close ends the function's context and waits for it.
type Background struct {
	Run func(context.Context)

	cancel context.CancelFunc
	done   chan struct{}
}

// Open implements Part. Run may take longer than ctx.
func (b *Background) Open(ctx context.Context) error {
	ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	b.done = make(chan struct{})
	go func() {
		defer close(b.done)
		b.Run(ctx)
	}()
	return nil
}

// Close implements Part.
func (b *Background) Close() error {
	b.cancel()
	<-b.done
	return nil
}
