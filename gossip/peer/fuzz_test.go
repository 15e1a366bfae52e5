package peer

import (
	"bytes"
	"testing"
)

// FuzzJoinFrames feeds the decoders of all join frames: no panic, bounded results, and what is accepted survives
// encoding.
func FuzzJoinFrames(f *testing.F) {
	f.Add(byte(frameHello), hello{ID: "joiner", Proof: make([]byte, proofSize)}.appendTo(nil))
	f.Add(byte(frameCluster), clusterProof{ClusterID: "c", PubPEM: []byte("pem"), Signature: []byte("sig")}.appendTo(nil))
	f.Add(byte(frameRequest), request{ClusterID: "c", Advertise: "192.0.2.1:4520", Payload: []byte("p")}.appendTo(nil))
	f.Add(byte(frameRefused), refused{Code: refusedByAdmit, Text: "no"}.appendTo(nil))
	f.Add(byte(frameHello), []byte{1, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		var again []byte
		switch kind {
		case frameHello:
			h, err := parseHello(body)
			if err != nil {
				return
			}
			again = h.appendTo(nil)
		case frameCluster:
			c, err := parseCluster(body)
			if err != nil {
				return
			}
			again = c.appendTo(nil)
		case frameRequest:
			r, err := parseRequest(body)
			if err != nil {
				return
			}
			again = r.appendTo(nil)
		default:
			_, _ = parseRefused(body) // made legible, so not the same bytes
			return
		}
		if !bytes.Equal(again, body) {
			t.Fatalf("type %d: %q was accepted, but is %q again", kind, body, again)
		}
	})
}

// FuzzReadFrame reads frames from a hostile stream.
func FuzzReadFrame(f *testing.F) {
	var good bytes.Buffer
	_ = writeFrame(&good, frameProof, []byte("body"))
	f.Add(good.Bytes())
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{1, 0, 0, 4, 0, 0})
	f.Fuzz(func(t *testing.T, stream []byte) {
		_, body, err := readFrame(bytes.NewReader(stream), maxUnproven)
		if err == nil && (len(body) > maxUnproven || len(body)+5 > len(stream)) {
			t.Fatalf("a body of %d bytes from a stream of %d", len(body), len(stream))
		}
	})
}

// FuzzParseBook reads saved rosters.
func FuzzParseBook(f *testing.F) {
	f.Add([]byte(`{"version":1,"rev":3,"members":[{"id":"a","addr":"192.0.2.1:4520","fingerprint":"` + sha256hex(nil) + `"}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, entries, err := parseBook(data)
		if err != nil {
			return
		}
		if _, _, err := indexEntries(entries); err != nil {
			return
		}
		for _, e := range entries {
			if !e.ID.Valid() || !e.Addr.IsValid() || len(e.Fingerprint) != 64 {
				t.Fatalf("entry %+v was accepted", e)
			}
		}
	})
}
