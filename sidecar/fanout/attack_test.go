package fanout

import (
	"errors"
	"strings"
	"testing"
)

// What a sign-in notice names is remembered while a rotation's window is open: a peer must not choose its size.
func TestParseSignIn_IDLength(t *testing.T) {
	id := strings.Repeat("m", maxMinionID)
	got, epoch, err := parseSignIn(appendSignIn(nil, id, 7))
	if err != nil || got != id || epoch != 7 {
		t.Errorf("the longest id: %d bytes, epoch %d, %v", len(got), epoch, err)
	}
	for _, id := range []string{"", id + "m", strings.Repeat("m", 1<<20)} {
		if _, _, err := parseSignIn(appendSignIn(nil, id, 7)); !errors.Is(err, errMalformed) {
			t.Errorf("an id of %d bytes: %v", len(id), err)
		}
	}
}
