package console

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

// TestOutputsAreSalts compares with what Salt's own outputters print (testdata/outputters, Salt 3007).
func TestOutputsAreSalts(t *testing.T) {
	raw, err := os.ReadFile("testdata/outputters/salt.json")
	require.NoError(t, err)
	var rows []struct {
		Value, Nested string
		Txt           *string
	}
	require.NoError(t, json.Unmarshal(raw, &rows))
	for _, row := range rows {
		n, err := (&Env{}).toNode(json.RawMessage(row.Value))
		require.NoError(t, err)
		s := &Screen{}
		printNested(s, n, 0, "")
		if got := strings.TrimSuffix(s.String(), "\n"); got != row.Nested {
			t.Errorf("nested %s:\n%s\nwant\n%s", row.Value, got, row.Nested)
		}
		if got := txtOut(n); row.Txt != nil && got != *row.Txt {
			t.Errorf("txt %s:\n%s\nwant\n%s", row.Value, got, *row.Txt)
		}
	}
}
