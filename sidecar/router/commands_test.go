package router

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

func TestTableIsSound(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Commands {
		switch {
		case seen[c.Name]:
			t.Errorf("%s is listed twice", c.Name)
		case c.Route == 0 || c.Class == 0:
			t.Errorf("%s has no route or class", c.Name)
		case (c.Route == SignIn || c.Route == Admin) != (c.Class == Clear && c.Name != "ping"):
			t.Errorf("%s: clear commands are sign-in or admin, others are not", c.Name)
		}
		seen[c.Name] = true
	}
	for name, want := range map[string]string{"_return": "_return", "ping": "ping", "rm -rf": "unknown", "": "unknown"} {
		if got := Label(name); got != want {
			t.Errorf("Label(%q) = %q, want %q", name, got, want)
		}
	}
	if _, ok := Lookup(AES, "publish"); ok {
		t.Error("publish can be looked up as a sealed command")
	}
}

const listCommands = `
import json, salt.master as m, salt.version as v
print(json.dumps({"version": v.__version__,
  "clear": list(m.ClearFuncs.expose_methods), "aes": list(m.AESFuncs.expose_methods)}))
`

// TestCommandsOfInstalledSalt asks every Salt found below $SALTCLUSTER_VENVS (one virtual environment per directory)
// for its commands. One that the table does not know would be answered with {}; one that no Salt has should leave the
// table.
func TestCommandsOfInstalledSalt(t *testing.T) {
	dir := os.Getenv("SALTCLUSTER_VENVS")
	if dir == "" {
		t.Skip("SALTCLUSTER_VENVS is not set")
	}
	pythons, _ := filepath.Glob(filepath.Join(dir, "*", "bin", "python"))
	if len(pythons) == 0 {
		t.Skipf("no virtual environment in %s", dir)
	}
	for _, python := range pythons {
		out, err := exec.CommandContext(t.Context(), python, "-c", listCommands).Output()
		require.NoError(t, err, python)
		var salt struct {
			Version    string
			Clear, AES []string
		}
		if err := json.Unmarshal(out, &salt); err != nil {
			t.Fatalf("%s: %v in %q", python, err, out)
		}
		text, _, _ := strings.Cut(salt.Version, ".")
		major, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("version %q", salt.Version)
		}
		t.Run(salt.Version, func(t *testing.T) {
			compare(t, "ClearFuncs", append(salt.Clear, "_auth"), names(Clear, major))
			compare(t, "AESFuncs", salt.AES, names(AES, major))
		})
	}
}

func names(class Class, major int) (out []string) {
	for _, c := range Commands {
		if c.Class == class && c.Since <= major {
			out = append(out, c.Name)
		}
	}
	return out
}

func compare(t *testing.T, class string, salt, table []string) {
	t.Helper()
	var diff []string
	for _, name := range salt {
		if !slices.Contains(table, name) {
			diff = append(diff, fmt.Sprintf("%s is exposed by Salt and not in the table", name))
		}
	}
	for _, name := range table {
		if !slices.Contains(salt, name) {
			diff = append(diff, fmt.Sprintf("%s is in the table and not exposed by Salt", name))
		}
	}
	if len(diff) > 0 {
		t.Errorf("%s:\n%s", class, strings.Join(diff, "\n"))
	}
}

func TestCommandsThatReadRootsExist(t *testing.T) {
	n := 0
	for _, c := range Commands {
		if ReadsRoots(c.Name) {
			n++
			if c.Route != Local && c.Route != ByCache {
				t.Errorf("%s reads the roots of any master, but its route is %d", c.Name, c.Route)
			}
		} else if c.Note == "file server" {
			t.Errorf("%s does not wait while the roots change", c.Name)
		}
	}
	if n != 11 {
		t.Errorf("%d commands of the table read the roots", n)
	}
}
