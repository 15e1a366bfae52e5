package adminapi

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// What a profile may be of.
const (
	ProfileCPU        = "cpu"        // where the processor's time went while it was taken
	ProfileHeap       = "heap"       // who holds memory
	ProfileGoroutines = "goroutines" // what everything that is under way stands at
)

// ProfileKinds are all of them.
func ProfileKinds() []string { return []string{ProfileCPU, ProfileHeap, ProfileGoroutines} }

// MaxProfile bounds how long one of the processor is taken.
const MaxProfile = 5 * time.Minute

// ProfileQuery asks for a profile of the daemon.
type ProfileQuery struct {
	Kind string
	For  time.Duration // of ProfileCPU; whole seconds
	Text bool          // for people instead of for go tool pprof; not of ProfileCPU
}

// Validate says what is wrong with a query.
func (q ProfileQuery) Validate() error {
	switch {
	case !slices.Contains(ProfileKinds(), q.Kind):
		return Errorf(CodeInvalid, "", "a profile is of cpu, heap or goroutines, not of %q", q.Kind)
	case q.Kind != ProfileCPU && q.For != 0:
		return Errorf(CodeInvalid, "", "only a CPU profile takes a duration")
	case q.Kind == ProfileCPU && (q.For < time.Second || q.For > MaxProfile || q.For%time.Second != 0):
		return Errorf(CodeInvalid, "", "a CPU profile takes whole seconds, from 1s to %s", MaxProfile)
	case q.Kind == ProfileCPU && q.Text:
		return Errorf(CodeInvalid, "", "a CPU profile is for go tool pprof only")
	}
	return nil
}

// Values is the query as it is sent.
func (q ProfileQuery) Values() url.Values {
	return url.Values{"kind": {q.Kind}, "seconds": {strconv.Itoa(int(q.For / time.Second))},
		"text": {strconv.FormatBool(q.Text)}}
}

// ParseProfile reads Values.
func ParseProfile(v url.Values) (ProfileQuery, error) {
	seconds, err := strconv.ParseUint(v.Get("seconds"), 10, 16)
	if err != nil {
		return ProfileQuery{}, Errorf(CodeInvalid, "", "seconds: %v", err)
	}
	text, err := strconv.ParseBool(v.Get("text"))
	if err != nil {
		return ProfileQuery{}, Errorf(CodeInvalid, "", "text: %v", err)
	}
	q := ProfileQuery{Kind: v.Get("kind"), For: time.Duration(seconds) * time.Second, Text: text}
	return q, q.Validate()
}

// Profile writes a profile of the daemon to w. It tells places in the program, and nothing that passes through it.
func (c *Client) Profile(ctx context.Context, q ProfileQuery, w io.Writer) error {
	if err := q.Validate(); err != nil {
		return err
	}
	resp, err := c.doJSON(ctx, http.MethodGet, "/profile", q.Values(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return c.explainError(ctx, err)
	}
	return nil
}
