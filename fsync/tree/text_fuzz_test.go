package tree

import "testing"

// FuzzTexts reads hashes and slots as documents of other nodes have them.
func FuzzTexts(f *testing.F) {
	f.Add("file:base:0")
	f.Add("pillar:a:b:12")
	f.Add("file:base:00")
	f.Add("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
	f.Fuzz(func(t *testing.T, text string) {
		var s Slot
		if err := s.UnmarshalText([]byte(text)); err == nil && (s.String() != text || !s.Valid()) {
			t.Fatalf("%q is the slot %+v", text, s)
		}
		var h, again Hash
		if err := h.UnmarshalText([]byte(text)); err != nil {
			return
		}
		if err := again.UnmarshalText([]byte(h.String())); err != nil || again != h {
			t.Fatalf("%q is the hash %s", text, h)
		}
	})
}
