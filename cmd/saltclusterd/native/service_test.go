package native

import (
	"log/slog"
	"os"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster/configtest"
)

func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(all)
}

// A Service that is not made leaves nothing open, wherever that ends.
func TestNew_Incomplete(t *testing.T) {
	master := configtest.Load(t, 3006, "user: root\ncachedir: "+t.TempDir()+"\n")
	for name, change := range map[string]func(*Config){
		"no keys of the job cache": func(c *Config) { c.NativeReturns = true },
		"no bus":                   func(*Config) {},
	} {
		t.Run(name, func(t *testing.T) {
			c := Config{Master: master, Logger: slog.New(slog.DiscardHandler)}
			change(&c)
			before := openFiles(t)
			if _, err := New(c); err == nil {
				t.Fatal("it was made")
			}
			if after := openFiles(t); after != before {
				t.Errorf("%d files are open, not %d", after, before)
			}
		})
	}
}
