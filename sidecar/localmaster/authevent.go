package localmaster

import "context"

// AuthEvent is what a master fires on its bus for a sign-in, tag salt/auth (salt/channel/server.py:_auth; 3008:
// salt/master.py:AuthFuncs). The data of the three versions differ in nothing else.
type AuthEvent struct {
	Result bool
	Act    string // accept, pend, reject, denied, full
	ID     string
	Pub    string // as the minion sent it
}

// FireAuth fires the event of a sign-in.
func (b *Bus) FireAuth(ctx context.Context, e AuthEvent) error {
	return b.Fire(ctx, "salt/auth", map[string]any{"result": e.Result, "act": e.Act, "id": e.ID, "pub": e.Pub})
}
