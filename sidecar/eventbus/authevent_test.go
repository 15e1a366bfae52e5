package eventbus

import (
	"reflect"
	"testing"

	"github.com/tinylib/msgp/msgp"
)

func TestAuthEventData(t *testing.T) {
	grains := msgp.AppendMapStrStr(nil, map[string]string{"uuid": "x"})
	for name, c := range map[string]struct {
		grains []byte
		more   any
	}{"plain": {}, "with grains": {grains, map[string]any{"uuid": "x"}}} {
		data := AuthEvent{Result: true, Act: "accept", ID: "m1", Pub: "key", AutosignGrains: c.grains}.eventData("now")
		want := map[string]any{"result": true, "act": "accept", "id": "m1", "pub": "key", "_stamp": "now"}
		if c.more != nil {
			want["autosign_grains"] = c.more
		}
		got, rest, err := msgp.ReadMapStrIntfBytes(data, nil)
		if err != nil || len(rest) > 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v (%d bytes left, %v), want %v", name, got, len(rest), err, want)
		}
	}
}
