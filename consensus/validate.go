package consensus

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// Raft does not defend itself against liars, and its library believes whatever comes from a member: a log entry of a
// kind that it does not know, or a configuration that cannot be read, ends the process, at once and at every start
// thereafter, and a term or an index near the end of the numbers ends elections for good. Such messages no honest node
// sends, so they are refused before raft sees them. What a member says that is merely untrue is not recognised here:
// see docs/explanation/threat-model.md.

// errInvalidMessage is wrapped by the reasons why a message is not given to raft.
var errInvalidMessage = errors.New("the content is invalid")

// Bounds of what is believed.
const (
	farNumber  = 1 << 62 // terms and indexes get here only by lies ...
	farStep    = 1 << 24 // ... and then grow by this at most in one step, so that their end is never reached
	maxServers = 1 << 10 // members in a configuration
	maxAppend  = 31      // entries in a message: with MaxEntry, what maxCommand holds
	maxCommand = 32 << 20
	maxRestore = 1 << 30 // bytes of a snapshot of the state
)

// position is where this node is.
type position struct {
	term, last, applied uint64
	leader              node.ID // empty: it knows of none
}

// validateRPC says why a request is not given to raft; nil: it is. from is who sent it by its certificate, empty when
// that is not known.
func validateRPC(cmd any, from node.ID, s position) error {
	if err := validateHeader(cmd, from); err != nil {
		return err
	}
	switch c := cmd.(type) {
	case *raft.AppendEntriesRequest:
		return validateAppend(c, s)
	case *raft.RequestVoteRequest:
		return errors.Join(validateTerm(c.Term, s), validateLast(c.LastLogIndex, c.LastLogTerm, c.Term, s))
	case *raft.RequestPreVoteRequest:
		return errors.Join(validateTerm(c.Term, s), validateLast(c.LastLogIndex, c.LastLogTerm, c.Term, s))
	case *raft.InstallSnapshotRequest:
		return validateSnapshot(c, s)
	case *raft.TimeoutNowRequest:
		if from != "" && s.leader != "" && from != s.leader {
			return fmt.Errorf("%w: a call for an election, while %s leads", errInvalidMessage, s.leader)
		}
		return nil
	}
	return fmt.Errorf("%w: %T", errInvalidMessage, cmd)
}

// validateHeader refuses a message that is sent in the name of another member.
func validateHeader(cmd any, from node.ID) error {
	w, ok := cmd.(raft.WithRPCHeader)
	if !ok {
		return fmt.Errorf("%w: %T has no header", errInvalidMessage, cmd)
	}
	h := w.GetRPCHeader()
	id, err := node.ParseID(string(h.ID))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errInvalidMessage, err)
	case !bytes.Equal(h.ID, h.Addr), from != "" && id != from:
		return fmt.Errorf("%w: it speaks in the name of %.40q at %.40q", errInvalidMessage, h.ID, h.Addr)
	}
	return nil
}

func validateTerm(term uint64, s position) error {
	if isTooFar(term, s.term) {
		return fmt.Errorf("%w: term %d after %d", errInvalidMessage, term, s.term)
	}
	return nil
}

func isTooFar(n, now uint64) bool { return n > farNumber && (n < now || n-now > farStep) }

// validateLast is about the last entry that a sender claims to have.
func validateLast(index, of, term uint64, s position) error {
	if of > term || isTooFar(index, s.last) {
		return fmt.Errorf("%w: entry %d of term %d in term %d", errInvalidMessage, index, of, term)
	}
	return nil
}

func validateAppend(c *raft.AppendEntriesRequest, s position) error {
	if err := errors.Join(validateTerm(c.Term, s), validateLast(c.PrevLogEntry, c.PrevLogTerm, c.Term, s)); err != nil {
		return err
	}
	index, term := c.PrevLogEntry, c.PrevLogTerm
	for _, e := range c.Entries {
		index++
		if e == nil || e.Index != index || e.Term < term || e.Term > c.Term {
			return fmt.Errorf("%w: entries that do not follow each other", errInvalidMessage)
		}
		term = e.Term
		switch e.Type {
		case raft.LogNoop, raft.LogBarrier:
		case raft.LogCommand:
			// In the log it would stop this node for good, and when most have it, all of them.
			if _, err := state.DecodeEntry(e.Data); errors.Is(err, state.ErrUnsupported) {
				return fmt.Errorf("log entry %d: %w", e.Index, err)
			}
		case raft.LogConfiguration:
			if _, err := parseConfiguration(e.Data); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: an entry of kind %d", errInvalidMessage, e.Type)
		}
	}
	return nil
}

func validateSnapshot(c *raft.InstallSnapshotRequest, s position) error {
	err := errors.Join(validateTerm(c.Term, s), validateLast(c.LastLogIndex, c.LastLogTerm, c.Term, s))
	switch {
	case err != nil:
		return err
	case c.SnapshotVersion < 1 || c.SnapshotVersion > raft.SnapshotVersionMax:
		return fmt.Errorf("%w: a snapshot of version %d", errInvalidMessage, c.SnapshotVersion)
	case c.Size < 0 || c.Size > maxRestore:
		return fmt.Errorf("%w: a snapshot of %d bytes", errInvalidMessage, c.Size)
	case c.LastLogIndex < s.applied || c.ConfigurationIndex > c.LastLogIndex:
		return fmt.Errorf("%w: a snapshot up to %d, configured at %d, and %d is applied", errInvalidMessage, c.LastLogIndex,
			c.ConfigurationIndex, s.applied)
	}
	_, err = parseConfiguration(c.Configuration)
	return err
}

// parseConfiguration reads raft's list of members as raft does, which panics when it cannot.
func parseConfiguration(b []byte) (c raft.Configuration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: a configuration that cannot be read: %v", errInvalidMessage, p)
		}
	}()
	c = raft.DecodeConfiguration(b)
	voters, seen := 0, map[raft.ServerID]bool{}
	for _, s := range c.Servers {
		_, err := node.ParseID(string(s.ID))
		if err != nil || s.Address != addrOf(node.ID(s.ID)) || seen[s.ID] || s.Suffrage != raft.Voter &&
			s.Suffrage != raft.Nonvoter {
			return c, fmt.Errorf("%w: a configuration with %.40q at %.40q", errInvalidMessage, s.ID, s.Address)
		}
		seen[s.ID] = true
		if s.Suffrage == raft.Voter {
			voters++
		}
	}
	if voters == 0 || len(c.Servers) > maxServers {
		return c, fmt.Errorf("%w: a configuration of %d members with %d votes", errInvalidMessage, len(c.Servers), voters)
	}
	return c, nil
}
