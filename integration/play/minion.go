package play

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/zmtp"
)

// Times of stock minions.
const (
	authTimeout   = 5 * time.Second
	returnTimeout = 8 * time.Second // return_retry_timer is 5 to 10 s
	returnTries   = 3
)

// Errors of a minion's acts.
var (
	ErrNotAccepted = errors.New("the key is not accepted")
	ErrReply       = errors.New("the reply is not to be believed")
)

// Minion is a key pair with an id.
type Minion struct {
	ID   string
	host *lab.Host
	key  *saltcrypt.MasterKey
	tok  []byte

	up  atomic.Bool // subscribed
	mu  sync.Mutex
	pin *saltcrypt.PublicKey // the master it has met before
	got *Secrets             // of its last sign-in

	process []byte   // the token of this run
	had     []string // ids of the jobs it was given last; the reader's own

	serial uint64 // of the last publication opened with these secrets; the reader's own
}

// Secrets are what a minion has after it signed in.
type Secrets struct {
	AES     saltcrypt.Key // opens publications
	aes     *saltcrypt.Crypticle
	session *saltcrypt.Crypticle
}

// Session seals requests and opens answers.
func (s *Secrets) Session() *saltcrypt.Crypticle { return s.session }

// New makes a minion with a new key pair.
func New(host *lab.Host, id string) (*Minion, error) {
	key, err := saltcrypt.GenerateMasterKey(2048)
	if err != nil {
		return nil, err
	}
	tok, err := key.SignX931([]byte("salt"))
	if err != nil {
		return nil, err
	}
	process, err := saltcrypt.NewKey()
	if err != nil {
		return nil, err
	}
	return &Minion{ID: id, host: host, key: key, tok: tok, process: []byte(process.Text())}, nil
}

// PublicText is the public key as a file in a master's pki directory has it.
func (m *Minion) PublicText() string { return m.key.PublicText() }

// Token is its proof that it is itself, the same in all requests.
func (m *Minion) Token() []byte { return m.tok }

// Host is where the minion runs.
func (m *Minion) Host() *lab.Host { return m.host }

// Connected tells whether the minion that Serves has a subscription, as far as it can tell.
func (m *Minion) Connected() bool { return m.up.Load() }

// Secrets of the last sign-in; nil before the first.
func (m *Minion) Secrets() *Secrets {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.got
}

// Dial opens a connection to one of the ports as this minion would; its owner does with it what it likes.
func (m *Minion) Dial(ctx context.Context, addr, port, socket string) (*zmtp.Client, error) {
	return m.connect(ctx, addr, port, socket, 0)
}

func (m *Minion) connect(ctx context.Context, addr, port, socket string, beat time.Duration) (*zmtp.Client, error) {
	conn, err := m.host.Dial(ctx, "tcp", net.JoinHostPort(addr, port))
	if err != nil {
		return nil, err
	}
	return zmtp.NewClient(ctx, conn, zmtp.ClientOptions{SocketType: socket, Limits: zmtp.DefaultLimits, Heartbeat: beat})
}

// exchange sends one request on a connection of its own, as REQ sockets do.
func (m *Minion) exchange(ctx context.Context, addr string, body []byte) ([]byte, error) {
	c, err := m.connect(ctx, addr, "4506", "REQ", 0)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if err := c.WriteMessage(nil, body); err != nil {
		return nil, err
	}
	parts, err := c.ReadMessage()
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", errors.Join(context.Cause(ctx), err))
	}
	if len(parts) != 2 || len(parts[0]) != 0 {
		return nil, fmt.Errorf("%w: %d parts", ErrReply, len(parts))
	}
	return parts[1], nil
}

// Request sends a sealed command and returns what came back, opened.
func (m *Minion) Request(ctx context.Context, addr, cmd string, fields map[string]any) ([]byte, error) {
	s := m.Secrets()
	body, nonce, err := m.Seal(s, cmd, fields)
	if err != nil {
		return nil, err
	}
	return m.ask(ctx, addr, cmd, s, body, nonce)
}

// RequestLoad is Request with a load of the caller's, which has that nonce.
func (m *Minion) RequestLoad(ctx context.Context, addr string, load []byte, nonce string) ([]byte, error) {
	s := m.Secrets()
	if s == nil {
		return nil, fmt.Errorf("%s: %w", m.ID, ErrNotAccepted)
	}
	return m.ask(ctx, addr, "a load", s, m.envelope(s, load), nonce)
}

func (m *Minion) ask(ctx context.Context, addr, what string, s *Secrets, body []byte, nonce string) ([]byte, error) {
	answer, err := m.exchange(ctx, addr, body)
	if err != nil {
		return nil, fmt.Errorf("%s: %s at %s: %w", m.ID, what, addr, err)
	}
	sealed, ok := saltwire.Bytes(answer)
	if !ok {
		plain, err := m.openPrivate(answer, nonce)
		if err != nil {
			return nil, fmt.Errorf("%s: %s at %s: %w: neither sealed nor private: %w", m.ID, what, addr, ErrReply, err)
		}
		return plain, nil
	}
	plain, err := s.session.Open(nil, sealed)
	if err != nil {
		return nil, fmt.Errorf("%s: %s at %s: %w", m.ID, what, addr, &NotSealedError{Text: string(sealed)})
	}
	if len(plain) < len(nonce) || string(plain[:len(nonce)]) != nonce {
		return nil, fmt.Errorf("%s: %s at %s: %w: another nonce", m.ID, what, addr, ErrReply)
	}
	return plain[len(nonce):], nil
}

// openPrivate opens the answer to _pillar.
func (m *Minion) openPrivate(answer []byte, nonce string) ([]byte, error) {
	m.mu.Lock()
	master := m.pin
	m.mu.Unlock()
	data, err := herd.OpenPrivate(m.key, saltcrypt.OAEPSHA1, saltcrypt.PKCS1v15SHA1, master, answer)
	if err == nil && data.Nonce != nonce {
		err = errors.New("another nonce")
	}
	return data.Pillar, err
}

// NotSealedError is an answer that is not under the session key: how masters refuse. It is an ErrReply.
type NotSealedError struct{ Text string }

func (e *NotSealedError) Error() string { return fmt.Sprintf("%v: %.20q", ErrReply, e.Text) }

// Unwrap makes it one of those.
func (e *NotSealedError) Unwrap() error { return ErrReply }

// Seal makes the body of a request.
func (m *Minion) Seal(s *Secrets, cmd string, fields map[string]any) (body []byte, nonce string, err error) {
	if s == nil {
		return nil, "", fmt.Errorf("%s: %w", m.ID, ErrNotAccepted)
	}
	if nonce, err = newNonce(); err != nil {
		return nil, "", err
	}
	load := map[string]any{"cmd": cmd, "id": m.ID, "nonce": nonce, "ts": time.Now().Unix(), "tok": m.tok}
	for k, v := range fields {
		load[k] = v
	}
	plain, err := saltwire.AppendAny(nil, load, saltwire.Wire)
	if err != nil {
		return nil, "", err
	}
	return m.envelope(s, plain), nonce, nil
}

func (m *Minion) envelope(s *Secrets, plain []byte) []byte {
	return saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncAES, Load: s.session.Seal(nil, plain, nil), Version: 3, HasVersion: true, ID: m.ID,
		EncAlgo: saltcrypt.OAEPSHA1, SigAlgo: saltcrypt.PKCS1v15SHA1,
	})
}

func newNonce() (string, error) {
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(raw[:]), nil
}
