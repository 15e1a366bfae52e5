package eventbus

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/sidecar/saltwire"
)

const authTag = "salt/auth"

// AuthEvent is what a master fires on its bus for a sign-in, tag salt/auth (salt/channel/server.py:_auth; 3008:
// salt/master.py:AuthFuncs). The data of the three versions differ in nothing else.
type AuthEvent struct {
	Result bool
	Act    string // accept, pend, reject, denied, full
	ID     string
	Pub    string // as the minion sent it

	AutosignGrains []byte // msgpack of a map, as the minion sent it; nil: not in the event
}

// FireAuth fires the event of a sign-in. In a storm there are many, and no caller waits for one: it may wait for others
// (Options.Linger), but stays before whatever is fired after it.
func (b *Bus) FireAuth(ctx context.Context, e AuthEvent) error {
	data, err := b.format.trimEvent(e.eventData(b.Stamp(time.Now())))
	if err != nil {
		return fmt.Errorf("fire event: %w", err)
	}
	return b.enqueueEvent(ctx, queuedEvent{tag: authTag, data: data, lazy: true})
}

// eventData is the event as msgpack.
func (e AuthEvent) eventData(stamp string) []byte {
	fields := 5
	if len(e.AutosignGrains) > 0 {
		fields++
	}
	dst := saltwire.AppendMapHeader(make([]byte, 0, len(e.ID)+len(e.Pub)+len(e.AutosignGrains)+128), fields)
	dst = saltwire.AppendBool(saltwire.AppendStr(dst, "result"), e.Result)
	for _, field := range [][2]string{{"act", e.Act}, {"id", e.ID}, {"pub", e.Pub}} {
		dst = saltwire.AppendStr(saltwire.AppendStr(dst, field[0]), field[1])
	}
	if len(e.AutosignGrains) > 0 {
		dst = append(saltwire.AppendStr(dst, "autosign_grains"), e.AutosignGrains...)
	}
	return saltwire.AppendStr(saltwire.AppendStr(dst, "_stamp"), stamp)
}
