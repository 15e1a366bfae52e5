package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

// Any bytes load or are refused with findings; what loads survives being
// shown, and an error never quotes the secret.
func FuzzLoad(f *testing.F) {
	f.Add("cluster_id: lab\ncluster_secret: " + goodSecret + "\n")
	f.Add("interface: &a [*a, *a]\n")
	f.Add("allow_clear_commands: {publish: [10.0.0.0/8], ? [x] : y}\n")
	f.Add("- a\n- b\n")
	f.Add("cluster_secret: *hunter2\n")
	f.Add("? {a: b}\n: c\n")
	f.Add(string(DefaultFile()))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "saltclusterd")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		c, err := loadTest(path, nil)
		if err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
		for _, o := range c.Show().Options {
			Flow(o.Value)
		}
		if s := c.Cluster.Secret.Reveal(); len(s) >= minSecret && err != nil && strings.Contains(err.Error(), s) &&
			strings.Count(text, s) == 1 {
			t.Errorf("the error quotes the secret: %v", err)
		}
	})
}
