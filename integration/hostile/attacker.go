package hostile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/play"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/zmtp"
)

const (
	// answerTimeout is how long an answer is waited for: most of what is hostile gets none.
	answerTimeout = 2 * time.Second
	connects      = 10 * time.Second
	// signInEvery bounds how often the minion signs in anew because it was told to.
	signInEvery = time.Second
)

// attacker says requests.
type attacker struct {
	minion *play.Minion
	dialer *lab.Dialer
	addrs  []string

	mu       sync.Mutex
	signedIn time.Time
}

// answer is what came of a request.
type answer struct {
	outcome string // "answered", "empty", "bad load", "no answer", "cut off", "not connected"
	plain   []byte // opened when it could be
}

// freshen signs in, unless that was a moment ago.
func (a *attacker) freshen(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.signedIn) < signInEvery {
		return nil
	}
	a.signedIn = time.Now()
	_, err := a.minion.SignIn(ctx, a.addrs[0])
	return err
}

func (a *attacker) credentials() credentials {
	return credentials{id: a.minion.ID, tok: a.minion.Token(), session: a.minion.Secrets().Session()}
}

// say sends a request to the node that its number falls to, on a connection of its own as stock minions do.
func (a *attacker) say(ctx context.Context, r *Request) answer {
	ctx, cancel := context.WithTimeout(ctx, connects+answerTimeout)
	defer cancel()
	conn, err := a.dialer.Dial(ctx, net.JoinHostPort(a.addrs[r.N%len(a.addrs)], "4506"))
	if err != nil {
		return answer{outcome: "not connected"}
	}
	z, err := zmtp.NewClient(ctx, conn, zmtp.ClientOptions{SocketType: "REQ", Limits: zmtp.DefaultLimits})
	if err != nil {
		return answer{outcome: "not connected"}
	}
	defer z.Close()
	body := r.body(a.credentials())
	if err := r.carriage.send(z, conn, body); err != nil {
		return answer{outcome: "cut off"}
	}
	if !r.carriage.answered() {
		return answer{outcome: "no answer"}
	}
	_ = conn.SetReadDeadline(time.Now().Add(answerTimeout))
	parts, err := z.ReadMessage()
	if err != nil {
		if timeout(err) {
			return answer{outcome: "no answer"}
		}
		return answer{outcome: "cut off"}
	}
	return a.open(parts[len(parts)-1])
}

func timeout(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

func (a *attacker) open(reply []byte) answer {
	if string(reply) == string(saltwire.BadLoad()) {
		return answer{"bad load", reply}
	}
	if sealed, ok := saltwire.Bytes(reply); ok {
		if plain, err := a.minion.Secrets().Session().Open(nil, sealed); err == nil {
			if len(plain) <= 32+1 { // the nonce and None, False or {}
				return answer{"empty", plain}
			}
			return answer{"answered", plain}
		}
	}
	return answer{"answered", reply}
}

// accepted waits until the minion can sign in at all nodes.
func (a *attacker) accepted(ctx context.Context) error {
	for _, addr := range a.addrs {
		err := lab.Eventually(ctx, time.Minute, a.minion.ID+" to be let in at "+addr, func(ctx context.Context) error {
			_, err := a.minion.SignIn(ctx, addr)
			return err
		})
		if err != nil {
			return fmt.Errorf("sign in: %w", err)
		}
	}
	return nil
}
