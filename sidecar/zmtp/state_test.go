package zmtp

import (
	"testing"

	"saltclusterd/integration/require"
)

// TestDecoder_Resume hands a decoder over at every byte of a conversation.
func TestDecoder_Resume(t *testing.T) {
	limits := DefaultLimits
	stream := AppendReady(AppendGreeting(nil), "REQ", "")
	stream = AppendMessage(stream, nil, make([]byte, 300))
	stream = AppendPing(stream, 0, []byte("x"))
	stream = AppendMessage(stream, nil, []byte("short"))
	for cut := range stream {
		d := NewDecoder(&limits)
		var got []Kind
		feed := func(in []byte) {
			for len(in) > 0 {
				ev, n, err := d.Next(in)
				require.NoError(t, err, "cut at", cut)
				if in = in[n:]; ev.Kind == Command {
					d.SetReady()
				}
				if ev.Kind != None {
					got = append(got, ev.Kind)
				}
			}
		}
		feed(stream[:cut])
		next, err := ResumeDecoder(&limits, d.State())
		require.NoError(t, err, "cut at", cut)
		d = next
		feed(stream[cut:])
		if len(got) != 7 || d.Midway() {
			t.Fatalf("cut at %d: %v", cut, got)
		}
	}
}

func TestImpossibleDecoderStates(t *testing.T) {
	for name, s := range map[string]DecoderState{
		"stage":    {Stage: 9},
		"flags":    {Stage: uint8(inBody), Flags: 0x80},
		"header":   {Stage: uint8(inHeader), Header: make([]byte, MaxFrameHeader)},
		"greeting": {Buf: make([]byte, GreetingSize)},
		"stranger": {Buf: []byte("GET /")},
		"body":     {Stage: uint8(inBody), Size: 3, Buf: []byte("four")},
		"numbers":  {Stage: uint8(inBody), Size: -1},
	} {
		if _, err := ResumeDecoder(&DefaultLimits, s); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
