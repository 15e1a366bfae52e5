package datacache

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// Answers that no node would give end a pull, and do no harm.
func TestPullOfNonsense(t *testing.T) {
	w, _, _, c := three(t)
	w.setKey("web1", "key")
	offer := encodeDigest(digest{ranged: true, stamps: []stamped{{"web1", 7}}})
	for name, answers := range map[string][][]byte{
		"records for an offer": {encodeRecords(Data, nil)},
		"an offer for records": {offer, offer},
		"a range that stays": {encodeDigest(digest{ranged: true, to: "b"}),
			encodeDigest(digest{ranged: true, from: "b", to: "b"})},
		"a record nobody wanted": {offer, encodeRecords(Data,
			[]record{{id: "web2", stamp: 7, key: fingerprint("key"), data: data{main: texts("a", "b")}}})},
		"an offer without range ": {encodeDigest(digest{stamps: []stamped{{"web1", 7}}})},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			err := c.store.Pull(t.Context(), func(context.Context, []byte) ([]byte, error) {
				n++
				return answers[min(n, len(answers))-1], nil
			}, func(int, int) {})
			if !errors.Is(err, errWire) || n > 3 {
				t.Errorf("%d questions: %v", n, err)
			}
		})
	}
	if g, _ := c.has("web2"); g != nil {
		t.Error("written")
	}
}

// More ids than an answer holds come in several.
func TestOfferInParts(t *testing.T) {
	s := &Store{table: map[string]entry{}}
	for i := range maxDigest + 5 {
		s.table[fmt.Sprintf("m%06d", i)] = entry{Stamp: 2}
	}
	first := s.offer(digest{ranged: true})
	if len(first.stamps) != maxDigest || first.to != first.stamps[maxDigest-1].id {
		t.Fatalf("%d to %q", len(first.stamps), first.to)
	}
	second := s.offer(digest{ranged: true, from: first.to})
	if len(second.stamps) != 5 || second.to != "" {
		t.Errorf("%d to %q", len(second.stamps), second.to)
	}
	if d := s.digestFrom("", 3); len(d.stamps) != 3 || d.to != "m000002" {
		t.Errorf("%+v", d)
	}
}
