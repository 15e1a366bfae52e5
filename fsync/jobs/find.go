package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"saltclusterd/gossip/node"
)

// Job is a job as the job cache of one node has it; the bytes are msgpack.
type Job struct {
	JID     string
	From    node.ID // whose job cache
	At      time.Time
	Heads   map[string][]byte // by the names of their files
	Returns map[string]Return // by minion
	Cut     bool              // some returns are left out because it is too large
}

// Return is what a minion returned: return.p, and out.p where there is one.
type Return struct{ Data, Out []byte }

// ErrUnknown says that no node knows a job.
var ErrUnknown = errors.New("no node knows the job")

// SilentError is ErrUnknown where some nodes could not be asked.
type SilentError struct {
	Nodes []node.ID
	Err   error // of all
}

func (e *SilentError) Error() string { return fmt.Sprintf("%v: %v", ErrUnknown, e.Err) }

// Unwrap makes it ErrUnknown, and what asking led to.
func (e *SilentError) Unwrap() []error { return []error{ErrUnknown, e.Err} }

const (
	// maxFound is how much of a job is shown.
	maxFound = 6 << 20
	// findTimeout bounds the question to each peer.
	findTimeout = 4 * time.Second
)

// Find returns a job from here, or from the first of its replicas and the other members that has it. What a node has
// that is none of the job's replicas may be a part of it (it took over from a publisher that is gone): a replica's is
// added to that.
func (s *Store) Find(ctx context.Context, jid string) (Job, error) {
	if !validJID(jid) {
		return Job{}, fmt.Errorf("%w: %q", ErrUnknown, jid)
	}
	replicas := s.cfg.Replicas(jid)
	order := append([]node.ID{s.cfg.Self}, replicas...)
	order = append(order, s.cfg.Members()...)
	var errs []error
	var silent []node.ID
	var found *Job
	asked := map[node.ID]bool{}
	for _, id := range order {
		isReplica := slices.Contains(replicas, id)
		if asked[id] || found != nil && !isReplica {
			continue
		}
		asked[id] = true
		raw, err := s.ask(ctx, id, encodeFind(jid))
		if err == nil {
			var m message
			if m, err = decode(raw); err == nil && len(m.records) > 0 {
				job := jobOf(jid, id, m.records)
				if found != nil {
					job = found.with(job)
				}
				if isReplica {
					return job, nil
				}
				found = &job
			}
		}
		if err != nil {
			errs, silent = append(errs, fmt.Errorf("ask %s: %w", id, err)), append(silent, id)
		}
	}
	if found != nil {
		return *found, nil
	}
	if len(errs) > 0 {
		return Job{}, &SilentError{silent, errors.Join(errs...)}
	}
	return Job{}, ErrUnknown
}

// ask puts a question to a node, which may be this one.
func (s *Store) ask(ctx context.Context, id node.ID, body []byte) ([]byte, error) {
	if id == s.cfg.Self {
		m, err := decode(body)
		if err != nil {
			return nil, err
		}
		return s.handle(id, m)
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	return s.cfg.Peers.Call(ctx, id, Path, body, MaxBody)
}

// cutName marks an answer that left returns out. No syndic has an empty id.
const cutName = ".minions..p"

var errEnough = errors.New("enough")

// local answers what is here of a job.
func (s *Store) local(jid string) ([]byte, error) {
	look, err := s.disk.look(jid)
	if gone(err) || s.disk.hash == 0 {
		return encodeRecords(nil), nil
	}
	if err != nil {
		return nil, err
	}
	var rs []*record
	size := 0
	err = s.disk.fetch(jid, look.at, look.items, func(r *record) error {
		if size += r.weight(); size > maxFound || len(rs) == maxRecords-1 {
			return errEnough
		}
		rs = append(rs, r)
		return nil
	}, s.skipped(jid))
	if errors.Is(err, errEnough) {
		rs, err = append(rs, &record{jid: jid, at: look.at, name: cutName}), nil
	}
	return encodeRecords(rs), err
}

// with adds what another node has of the job.
func (j Job) with(o Job) Job {
	for name, ret := range j.Returns { // the first one counts, here as everywhere
		o.Returns[name] = ret
	}
	for name, head := range j.Heads {
		if had, ok := o.Heads[name]; !ok || rankOf(name, head) > rankOf(name, had) {
			o.Heads[name] = head
		}
	}
	o.From, o.Cut = j.From, j.Cut || o.Cut
	return o
}

func jobOf(jid string, from node.ID, rs []*record) Job {
	j := Job{JID: jid, From: from, Heads: map[string][]byte{}, Returns: map[string]Return{}}
	for _, r := range rs {
		j.At = time.Unix(0, r.at)
		switch {
		case r.ret && r.hasO:
			j.Returns[r.name] = Return{r.data, r.out}
		case r.ret:
			j.Returns[r.name] = Return{Data: r.data}
		case r.name == cutName:
			j.Cut = true
		default:
			j.Heads[r.name] = r.data
		}
	}
	return j
}
