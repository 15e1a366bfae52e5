package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// record is the outer form of every command and snapshot record. A field added
// to a body, or a change of its meaning, needs a higher V: older nodes must not
// apply half of it.
type record struct {
	V         int             `json:"v"`
	T         string          `json:"t"`
	Ignorable bool            `json:"i,omitempty"`
	D         json.RawMessage `json:"d,omitempty"`
}

// version is the newest version of every record this package writes and reads.
const version = 1

// Level grows with every set of commands that an older node may not skip, and
// with every older one that comes to mean more. Members tell theirs by gossip;
// a command is proposed when all know its level, a new meaning begins with the
// entry that says so (LevelSet).
// (The trees, which came before levels, have a flag of their own.)
const (
	LevelJoin     = 1 // token.*, secret.*, join.admit, member.cert
	LevelLives    = 2 // level.set; Key.Again
	LevelIdentity = 3 // identity.stage, identity.switch, identity.drop

	LevelSeeds = 4 // seed.rotate

	Level = LevelSeeds // what this version knows
)

// decoder reads the body of a command.
type decoder func(body []byte) (Command, error)

func decodeAs[C Command](body []byte) (Command, error) {
	var c C
	if err := decodeStrict(body, &c); err != nil {
		return nil, err
	}
	return c, nil
}

// decodeWire decodes a command that holds secrets through its wire form.
func decodeWire[W interface{ toCommand() Command }](body []byte) (Command, error) {
	var w W
	if err := decodeStrict(body, &w); err != nil {
		return nil, err
	}
	return w.toCommand(), nil
}

// lookupDecoder maps record types to decoders. A type once released keeps its name
// and its meaning for ever.
func lookupDecoder(t string) decoder {
	switch t {
	case "cluster.init":
		return decodeWire[wireInit]
	case "member.add":
		return decodeAs[MemberAdd]
	case "member.remove":
		return decodeAs[MemberRemove]
	case "member.set":
		return decodeAs[MemberSet]
	case "key.set":
		return decodeAs[KeySet]
	case "tombstones.prune":
		return decodeAs[TombstonesPrune]
	case "denied.set":
		return decodeAs[DeniedSet]
	case "denied.clear":
		return decodeAs[DeniedClear]
	case "epoch.rotate":
		return decodeWire[wireEpochRotate]
	case "seed.rotate":
		return decodeWire[wireSeedRotate]
	case "gossip.key":
		return decodeWire[wireGossipKeyAdd]
	case "gossip.drop":
		return decodeAs[GossipKeyDrop]
	case "identity.stage":
		return decodeAs[IdentityStage]
	case "identity.switch":
		return decodeAs[IdentitySwitch]
	case "identity.drop":
		return decodeAs[IdentityDrop]
	case "level.set":
		return decodeLevel
	case "token.add":
		return decodeAs[TokenAdd]
	case "token.drop":
		return decodeAs[TokenDrop]
	case "join.admit":
		return decodeAs[JoinAdmit]
	case "member.cert":
		return decodeAs[MemberCert]
	case "secret.set":
		return decodeWire[wireJoinSecretSet]
	case "secret.drop":
		return decodeAs[JoinSecretDrop]
	case "roots.propose":
		return decodeAs[RootsPropose]
	case "roots.confirm":
		return decodeAs[RootsConfirm]
	case "roots.drop":
		return decodeAs[RootsDrop]
	}
	return nil
}

// decodeStrict decodes exactly one JSON value with known fields only. Its errors
// never quote the input, which may hold secrets.
func decodeStrict(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%w: %s", ErrMalformed, describeError(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: bytes after the record", ErrMalformed)
	}
	return nil
}

// EncodeCommand writes the JSON record of a command, secrets included: the
// bytes are for the log and for authenticated peers only.
func EncodeCommand(c Command) ([]byte, error) {
	r, err := toRecord(c)
	if err != nil {
		return nil, err
	}
	return json.Marshal(r)
}

func toRecord(c Command) (record, error) {
	switch c := c.(type) {
	case nil:
		return record{}, fmt.Errorf("%w: no command", ErrMalformed)
	case unknown:
		return c.record, nil
	case malformed:
		return record{}, c.err
	}
	var body any = c
	if w, ok := c.(interface{ toWire() any }); ok {
		body = w.toWire()
	}
	d, err := json.Marshal(body)
	if err != nil {
		return record{}, fmt.Errorf("encode %s: %w", c.Type(), err)
	}
	return record{V: version, T: c.Type(), D: d}, nil
}

// DecodeCommand reads one JSON record. A type or version this node does not
// know is ErrUnsupported unless the record is marked ignorable; then the
// command does nothing.
func DecodeCommand(b []byte) (Command, error) {
	var r record
	if err := decodeStrict(b, &r); err != nil {
		return nil, err
	}
	return r.decodeCommand()
}

func (r record) decodeCommand() (Command, error) {
	dec := lookupDecoder(r.T)
	if dec == nil || r.V > version {
		if r.Ignorable {
			return unknown{r}, nil
		}
		return nil, fmt.Errorf("command %.40q version %d: %w", r.T, r.V, ErrUnsupported)
	}
	if r.V < 1 {
		return nil, fmt.Errorf("%w: command without a version", ErrMalformed)
	}
	c, err := dec(r.D)
	if err != nil {
		return nil, fmt.Errorf("command %s: %w", r.T, err)
	}
	return c, nil
}

// unknown is a command of a newer version that may be skipped.
type unknown struct{ record }

func (u unknown) Type() string         { return u.T }
func (u unknown) Validate() error      { return nil }
func (u unknown) applyTo(*data) Result { return Result{Code: Ignored} }

// malformed stands for a command that could not be decoded, so that the rest
// of its entry keeps its place. Every node fails on it alike.
type malformed struct{ err error }

func (malformed) Type() string         { return "malformed" }
func (m malformed) Validate() error    { return m.err }
func (malformed) applyTo(*data) Result { return Result{Code: Invalid} }
