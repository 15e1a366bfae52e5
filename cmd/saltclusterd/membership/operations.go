package membership

import "context"

// Operations holds a token while a bootstrap, join, restore, recovery, upgrade or rotation of certificates is under
// way, so that there is one at a time.
type Operations chan struct{}

// NewOperations returns Operations of which none is under way.
func NewOperations() Operations { return make(Operations, 1) }

// TryBegin begins an operation unless another one is under way.
func (o Operations) TryBegin() bool {
	select {
	case o <- struct{}{}:
		return true
	default:
		return false
	}
}

// Claim is TryBegin with the function that ends the operation.
func (o Operations) Claim() (release func(), ok bool) { return o.End, o.TryBegin() }

// Begin waits until no operation is under way, and begins one.
func (o Operations) Begin(ctx context.Context) error {
	select {
	case o <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// End ends the operation.
func (o Operations) End() { <-o }
