package snapshot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/integration/require"
)

// A passphrase is taken whole or not at all; what comes after its line is not looked at.
func TestReadPassphrase(t *testing.T) {
	long := strings.Repeat("p", console.MaxSecret)
	for _, tc := range []struct{ name, content, want, err string }{
		{"a line", "correct horse\n", "correct horse", ""},
		{"no end of the line", "correct horse", "correct horse", ""},
		{"lines after it", "correct horse\r\n" + long + long, "correct horse", ""},
		{"as long as it may be", long, long, ""},
		{"too long", long + "p\n", "", "more than 4096 bytes"},
		{"too short", "horse\n" + long, "", "less than 8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pass")
			require.NoError(t, os.WriteFile(path, []byte(tc.content), 0o600))
			got, err := readPassphrase(t.Context(), path)
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}
