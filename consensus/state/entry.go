package state

import (
	"encoding/json"
	"fmt"
)

// Request is the commands of one Propose call.
type Request struct {
	// ID makes a repeated request recognisable; at most MaxID bytes. A request
	// without an id is applied each time it comes.
	ID string
	// Since is View.Seq at the proposer before the first attempt.
	Since uint64
	// Retry marks every attempt after the first. A retry whose first attempt
	// may have been applied and forgotten since is answered OutcomeUnknown.
	Retry bool
	// Commands are applied in order, each for itself: one that fails does not
	// undo or stop the others.
	Commands []Command
}

// Entry is the content of one log entry.
type Entry struct{ Requests []Request }

type wireRequest struct {
	ID    string   `json:"id,omitempty"`
	Since uint64   `json:"s,omitempty"`
	Retry bool     `json:"r,omitempty"`
	Cmds  []record `json:"c"`
}

type wireEntry struct {
	V        int           `json:"v"`
	T        string        `json:"t"`
	Requests []wireRequest `json:"r"`
}

const entryType = "entry"

// EncodeEntry writes an entry for the log, secrets included.
func EncodeEntry(e Entry) ([]byte, error) {
	w := wireEntry{V: version, T: entryType, Requests: make([]wireRequest, 0, len(e.Requests))}
	for _, r := range e.Requests {
		wr := wireRequest{ID: r.ID, Since: r.Since, Retry: r.Retry, Cmds: make([]record, 0, len(r.Commands))}
		for _, c := range r.Commands {
			rec, err := toRecord(c)
			if err != nil {
				return nil, err
			}
			wr.Cmds = append(wr.Cmds, rec)
		}
		w.Requests = append(w.Requests, wr)
	}
	b, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encode entry: %w", err)
	}
	if len(b) > MaxEntry {
		return nil, fmt.Errorf("entry of %d bytes, at most %d", len(b), MaxEntry)
	}
	return b, nil
}

// DecodeEntry reads an entry. A command that is malformed keeps its place and
// gets the result Invalid when applied; one that matters and is unknown makes
// the whole entry ErrUnsupported.
func DecodeEntry(b []byte) (Entry, error) {
	if len(b) > MaxEntry {
		return Entry{}, fmt.Errorf("%w: entry of %d bytes, at most %d", ErrMalformed, len(b), MaxEntry)
	}
	var head struct {
		V int    `json:"v"`
		T string `json:"t"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return Entry{}, fmt.Errorf("%w: entry: %s", ErrMalformed, describeError(err))
	}
	if head.V > version || (head.V == version && head.T != entryType) {
		return Entry{}, fmt.Errorf("entry %.40q version %d: %w", head.T, head.V, ErrUnsupported)
	}
	var w wireEntry
	if err := decodeStrict(b, &w); err != nil {
		return Entry{}, err
	}
	if w.V < 1 || len(w.Requests) > MaxRequests {
		return Entry{}, fmt.Errorf("%w: entry without a version or with %d requests", ErrMalformed, len(w.Requests))
	}
	e := Entry{Requests: make([]Request, 0, len(w.Requests))}
	for _, wr := range w.Requests {
		r, err := wr.toRequest()
		if err != nil {
			return Entry{}, err
		}
		e.Requests = append(e.Requests, r)
	}
	return e, nil
}

// EncodeRequest writes a request for another node, secrets included.
func EncodeRequest(r Request) ([]byte, error) { return EncodeEntry(Entry{Requests: []Request{r}}) }

// DecodeRequest reads what EncodeRequest wrote.
func DecodeRequest(b []byte) (Request, error) {
	e, err := DecodeEntry(b)
	if err != nil {
		return Request{}, err
	}
	if len(e.Requests) != 1 {
		return Request{}, fmt.Errorf("%w: %d requests instead of one", ErrMalformed, len(e.Requests))
	}
	return e.Requests[0], nil
}

func (w wireRequest) toRequest() (Request, error) {
	if len(w.Cmds) > MaxCommands || len(w.ID) > MaxID {
		return Request{}, fmt.Errorf("%w: request with %d commands", ErrMalformed, len(w.Cmds))
	}
	r := Request{ID: w.ID, Since: w.Since, Retry: w.Retry, Commands: make([]Command, 0, len(w.Cmds))}
	for _, rec := range w.Cmds {
		c, err := rec.decodeCommand()
		if isUnsupported(err) {
			return Request{}, err
		}
		if err != nil {
			c = malformed{err}
		}
		r.Commands = append(r.Commands, c)
	}
	return r, nil
}

// Validate checks the shape of a request before it is proposed.
func (r Request) Validate() error {
	if len(r.Commands) == 0 || len(r.Commands) > MaxCommands {
		return fmt.Errorf("a request has 1 to %d commands, not %d", MaxCommands, len(r.Commands))
	}
	if err := validText("request id", r.ID, MaxID); err != nil {
		return err
	}
	for i, c := range r.Commands {
		if c == nil {
			return fmt.Errorf("command %d is nil", i)
		}
		if err := c.Validate(); err != nil {
			return fmt.Errorf("command %d (%s): %w", i, c.Type(), err)
		}
	}
	return nil
}
