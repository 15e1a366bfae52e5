//go:build integration

package kubernetes

import (
	"os/exec"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

// TestSchema has the example checked against the schemas of the oldest Kubernetes that it is for and of a new one; and
// a mistake found, so that the checker is known to look.
func TestSchema(t *testing.T) {
	out, err := exec.Command("../setup/kubernetes").Output()
	require.NoError(t, err, "make the checker")
	checker := strings.TrimSpace(string(out))
	for _, version := range []string{"1.29", "1.37"} {
		if out, err := exec.Command(checker, "--strict", "-k", version, example).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", version, err, out)
		}
		cmd := exec.Command(checker, "--strict", "-k", version, "-")
		cmd.Stdin = strings.NewReader("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: x}\nspec: {minAvailible: 2}\n")
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("%s: a mistake was taken:\n%s", version, out)
		}
	}
}
