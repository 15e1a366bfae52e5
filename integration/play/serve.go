package play

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/saltwire"
)

// Job is a publication of labmod.count that was for this minion.
type Job struct {
	Jid      string
	MasterID string
	Number   int
}

// Observer hears what happens to minions. Its methods are called by several goroutines.
type Observer interface {
	Subscribed(m *Minion, addr string, from, to time.Time, why error) // a subscription has ended
	Ran(m *Minion, j Job)
	Returned(m *Minion, j Job, first string, at, acked time.Time, tries int) // acked is zero when no node took it
}

// Life says how a minion lives.
type Life struct {
	Addr     string   // where it signs in, subscribes and returns
	Others   []string // where it returns when Addr does not answer
	Observer Observer
}

const (
	pauseMin  = 200 * time.Millisecond
	pauseMax  = 2 * time.Second
	subBeat   = 3 * time.Second // of silence until the minion asks whether the publisher lives; libzmq's is 10 s
	maxRecall = 3               // sign-ins for one publication that does not open
)

// Serve lives until ctx ends, and then waits until all its returns have ended.
func (m *Minion) Serve(ctx context.Context, l Life) {
	var returns sync.WaitGroup
	defer returns.Wait()
	pause := backoff.Backoff{Min: pauseMin, Max: pauseMax}
	for ctx.Err() == nil {
		start := time.Now()
		m.connected(ctx, l, &returns)
		if time.Since(start) > pauseMax {
			pause.Reset()
		}
		pause.Wait(ctx)
	}
}

// connected is one subscription, from the sign-in to its end.
func (m *Minion) connected(ctx context.Context, l Life, returns *sync.WaitGroup) {
	if _, err := m.freshen(ctx, l.Addr); err != nil {
		return
	}
	c, err := m.connect(ctx, l.Addr, "4505", "SUB", subBeat)
	if err != nil {
		return
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if c.Subscribe(nil) != nil {
		return
	}
	from := time.Now()
	m.up.Store(true)
	defer m.up.Store(false)
	for {
		parts, err := c.ReadMessage()
		if err != nil {
			l.Observer.Subscribed(m, l.Addr, from, m.heardUntil(ctx, from), err)
			return
		}
		m.publication(ctx, l, parts, returns)
	}
}

// heardUntil is when a subscription that has been found dead was alive for certain: before the last silence.
func (m *Minion) heardUntil(ctx context.Context, from time.Time) time.Time {
	if ctx.Err() != nil { // we ended it
		return time.Now()
	}
	until := time.Now().Add(-4 * subBeat)
	if until.Before(from) {
		return from
	}
	return until
}

// publication opens what came, runs it and sends the return.
func (m *Minion) publication(ctx context.Context, l Life, parts [][]byte, returns *sync.WaitGroup) {
	plain := m.openPub(ctx, l.Addr, parts[len(parts)-1])
	if plain == nil {
		return
	}
	p, err := saltwire.PeekPub(plain)
	if err != nil {
		return
	}
	if p.HasSerial { // salt/crypt.py:Crypticle.loads: what does not grow is ignored
		if p.Serial <= m.serial {
			return
		}
		m.serial = p.Serial
	}
	j, mine := m.job(plain, p)
	if !mine || !m.first(j.Jid) {
		return
	}
	l.Observer.Ran(m, j)
	returns.Go(func() { m.giveBack(ctx, l, j) })
}

// openPub opens a publication, signing in again when it does not open.
func (m *Minion) openPub(ctx context.Context, addr string, body []byte) []byte {
	env, err := saltwire.ParsePub(body)
	if err != nil {
		return nil
	}
	for range maxRecall {
		if s := m.Secrets(); s != nil {
			if plain, err := s.aes.Open(nil, env.Load); err == nil {
				return plain
			}
		}
		if _, err := m.freshen(ctx, addr); err != nil {
			return nil
		}
	}
	return nil
}

// freshen signs in. Only another key begins a new series of serials, as in a stock minion
// (salt/crypt.py:AsyncAuth.authenticate).
func (m *Minion) freshen(ctx context.Context, addr string) (*Secrets, error) {
	before := m.Secrets()
	s, err := m.SignIn(ctx, addr)
	if err == nil && (before == nil || before.AES.Text() != s.AES.Text()) {
		m.serial = 0
	}
	return s, err
}

// job tells whether a publication is one of ours and for this minion.
func (m *Minion) job(plain []byte, p saltwire.PubPeek) (j Job, mine bool) {
	j = Job{Jid: p.JID, MasterID: p.MasterID, Number: -1}
	everybody := false
	_ = saltwire.WalkMap(plain, func(key, value []byte) error {
		switch string(key) {
		case "tgt":
			b, _ := saltwire.Bytes(value)
			everybody = p.TgtType == "compound" && m.matches(string(b)) || string(b) == "*" || string(b) == m.ID
		case "arg":
			_ = saltwire.WalkArray(value, func(arg []byte) error {
				if n, ok := saltwire.Int(arg); ok {
					j.Number = int(n)
				}
				return nil
			})
		}
		return nil
	})
	return j, p.Fun == "labmod.count" && (everybody || slices.Contains(p.Targets, m.ID))
}

// matches is the compound matcher for terms that are names, lists of them, and what joins them
// (salt/matchers/compound_match.py); from the left to the right, as far as these tests need it.
func (m *Minion) matches(target string) bool {
	is, not := true, false
	for _, word := range strings.Fields(target) {
		list, isList := strings.CutPrefix(word, "L@")
		switch word {
		case "(", ")", "and":
		case "not":
			not = !not
		default:
			hit := word == "*" || word == m.ID || isList && slices.Contains(strings.Split(list, ","), m.ID)
			is, not = is && hit != not, false
		}
	}
	return is
}

// remembered is how many jobs a minion remembers (minion_jid_queue_hwm).
const remembered = 100

// first tells whether the job has not been given to this minion before (salt/minion.py:Minion._handle_decoded_payload).
func (m *Minion) first(jid string) bool {
	if slices.Contains(m.had, jid) {
		return false
	}
	m.had = append(m.had, jid)
	m.had = m.had[max(0, len(m.had)-remembered):]
	return true
}

// giveBack returns a job as stock minions do: three tries, then never again (salt/minion.py:Minion._send_req_async,
// return_retry_*).
func (m *Minion) giveBack(ctx context.Context, l Life, j Job) {
	at := time.Now()
	addrs := append([]string{l.Addr}, l.Others...)
	for try := range returnTries {
		began := time.Now()
		if err := m.Return(ctx, addrs[try%len(addrs)], j); err == nil {
			l.Observer.Returned(m, j, l.Addr, at, time.Now(), try+1)
			return
		}
		// A refused connection does not make a minion faster: libzmq reconnects on its own.
		if !backoff.Sleep(ctx, returnTimeout-time.Since(began)) {
			return
		}
	}
	l.Observer.Returned(m, j, l.Addr, at, time.Time{}, returnTries)
}

// Return sends a job's return once; nil means that it was acknowledged.
func (m *Minion) Return(ctx context.Context, addr string, j Job) error {
	ctx, cancel := context.WithTimeout(ctx, returnTimeout)
	defer cancel()
	fields := map[string]any{
		"jid": j.Jid, "return": j.Number, "retcode": 0, "success": true, "fun": "labmod.count", "fun_args": []any{j.Number},
		"out": "nested",
	}
	if j.MasterID != "" {
		fields["master_id"] = j.MasterID
	}
	_, err := m.Request(ctx, addr, "_return", fields)
	return err
}

// Fire sends an event; nil means that it was acknowledged.
func (m *Minion) Fire(ctx context.Context, addr, tag string) error {
	ctx, cancel := context.WithTimeout(ctx, returnTimeout)
	defer cancel()
	_, err := m.Request(ctx, addr, "_minion_event", map[string]any{"tag": tag, "data": map[string]any{"from": m.ID}})
	return err
}

// Hears tells whether the minion, subscribed at addr with the secrets it had, can open a publication that comes within
// the time given. It never signs in.
func (m *Minion) Hears(ctx context.Context, addr string, within time.Duration) (bool, error) {
	s := m.Secrets()
	if s == nil {
		return false, fmt.Errorf("%s: %w", m.ID, ErrNotAccepted)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	c, err := m.connect(ctx, addr, "4505", "SUB", 0)
	if err != nil {
		return false, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if err := c.Subscribe(nil); err != nil {
		return false, err
	}
	for {
		parts, err := c.ReadMessage()
		if err != nil {
			return false, nil
		}
		if env, err := saltwire.ParsePub(parts[len(parts)-1]); err == nil {
			if _, err := s.aes.Open(nil, env.Load); err == nil {
				return true, nil
			}
		}
	}
}
