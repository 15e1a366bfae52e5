package state

import (
	"encoding/json"
	"errors"
	"io"
)

// The wire forms of the commands that hold secrets. They are the only types
// through which a secret becomes JSON, and they are never kept.

type wireInit struct {
	Identity
	Founder     Member `json:"founder"`
	EpochKey    string `json:"epoch_key"`
	SessionSeed []byte `json:"session_seed"`
	GossipKey   []byte `json:"gossip_key"`
	Audit
}

func (c Init) toWire() any {
	return wireInit{c.Identity, c.Founder, c.EpochKey.Text(), c.SessionSeed.Bytes(), c.GossipKey.Bytes(), c.Audit}
}

func (w wireInit) toCommand() Command {
	return Init{w.Identity, w.Founder, SecretText(w.EpochKey), NewSecret(w.SessionSeed), NewSecret(w.GossipKey), w.Audit}
}

type wireEpochRotate struct {
	Expect uint64 `json:"expect"`
	Key    string `json:"key"`
	Reason string `json:"reason,omitempty"`
	Audit
}

func (c EpochRotate) toWire() any {
	return wireEpochRotate{c.Expect, c.Key.Text(), c.Reason, c.Audit}
}

func (w wireEpochRotate) toCommand() Command {
	return EpochRotate{w.Expect, SecretText(w.Key), w.Reason, w.Audit}
}

type wireGossipKeyAdd struct {
	Expect uint64 `json:"expect"`
	Key    []byte `json:"key"`
	Audit
}

func (c GossipKeyAdd) toWire() any {
	return wireGossipKeyAdd{c.Expect, c.Key.Bytes(), c.Audit}
}

func (w wireGossipKeyAdd) toCommand() Command {
	return GossipKeyAdd{w.Expect, NewSecret(w.Key), w.Audit}
}

type wireEpoch struct {
	N      uint64 `json:"n"`
	Key    string `json:"key"`
	Reason string `json:"reason,omitempty"`
	Rev    uint64 `json:"rev"`
	Audit
}

func (e Epoch) wireEpoch() wireEpoch {
	return wireEpoch{e.N, e.Key.Text(), e.Reason, e.Rev, e.Audit}
}

func (w wireEpoch) toEpoch() Epoch {
	return Epoch{w.N, SecretText(w.Key), w.Reason, w.Rev, w.Audit}
}

type wireGossipKey struct {
	N   uint64 `json:"n"`
	Key []byte `json:"key"`
	Rev uint64 `json:"rev"`
	Audit
}

type wireSeed struct {
	Seed []byte `json:"seed"`
}

// describeError names what is wrong with JSON input without quoting any of it.
func describeError(err error) string {
	var syn *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syn):
		return "not JSON"
	case errors.As(err, &typ):
		return "wrong type in field " + typ.Field
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "cut short"
	}
	return "unknown field or bad value"
}
