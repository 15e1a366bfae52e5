package torn_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"
	"golang.org/x/sys/unix"

	"saltclusterd/durable/torn"
	"saltclusterd/integration/require"
)

func TestLook(t *testing.T) {
	dir := t.TempDir()
	small := msgp.AppendString(nil, "one")
	large := msgp.AppendMapHeader(nil, 2)
	large = msgp.AppendString(msgp.AppendString(large, "return"), strings.Repeat("x", 9_000))
	large = msgp.AppendBool(msgp.AppendString(large, "success"), true)
	text := msgp.AppendString(nil, strings.Repeat("y", 9_000))
	for name, c := range map[string]struct {
		content []byte
		want    torn.Condition
	}{
		"small":               {small, torn.Whole},
		"empty":               {nil, torn.Torn},
		"cut off":             {small[:2], torn.Torn},
		"more than a value":   {append(small[:len(small):len(small)], 0), torn.Torn},
		"large":               {large, torn.Whole},
		"large and cut off":   {large[:8192], torn.Torn},
		"large and no map":    {text, torn.Whole},
		"no map, and cut off": {text[:8192], torn.Torn},
		"zeros":               {make([]byte, 9_000), torn.Torn},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), c.content, 0o600))
		if got, err := torn.Look(unix.AT_FDCWD, filepath.Join(dir, name)); err != nil || got != c.want {
			t.Errorf("%s: %v, %v; not %v", name, got, err, c.want)
		}
	}
	if got, err := torn.Look(unix.AT_FDCWD, filepath.Join(dir, "none", "at all")); err != nil || got != torn.Missing {
		t.Errorf("missing: %v, %v", got, err)
	}
}
