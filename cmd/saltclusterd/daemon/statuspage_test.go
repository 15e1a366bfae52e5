package daemon

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

// Every measure of the page is a metric that a member has, and the page says what status says.
func TestStatusPageOfANode(t *testing.T) {
	addr := fmt.Sprintf("127.0.0.1:%d", freePort(t, "127.0.0.1"))
	n := startNodeWith(t, "m1", t.TempDir(), []string{"health_listen: " + addr})
	page := func() string {
		t.Helper()
		resp, err := http.Get("http://" + addr + "/status")
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d, %v: %s", resp.StatusCode, err, body)
		}
		return string(body)
	}
	if text := page(); !strings.Contains(text, "this node belongs to no cluster yet") {
		t.Error(text)
	}
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, quiet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a page that shows the cluster", func() error {
		for _, want := range []string{">test <", "accepts no work now", "no salt-master of the cluster answers", "present",
			"publications"} {
			if text := page(); !strings.Contains(text, want) {
				return fmt.Errorf("it lacks %q: %.2500s", want, text)
			}
		}
		return nil
	})
	names := registered(t)
	for _, name := range operator.PageMetrics() {
		if names[name] == nil {
			t.Errorf("there is no metric %s", name)
		}
	}
}
