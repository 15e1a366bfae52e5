package mmapkeys

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// stock runs testdata/stock.py with a Salt that has mmap_key.
func stock(t *testing.T, b *Bank, what string, args ...string) ([]byte, error) {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(os.Getenv("SALTCLUSTER_VENVS"), "3008.*/bin/python"))
	if os.Getenv("SALTCLUSTER_VENVS") == "" || len(found) == 0 {
		t.Skip("SALTCLUSTER_VENVS has no 3008")
	}
	all := append([]string{
		"testdata/stock.py", what, b.path, strconv.Itoa(b.g.Slots), strconv.Itoa(b.g.SlotSize), strconv.Itoa(b.g.KeySize),
	}, args...)
	cmd := exec.CommandContext(t.Context(), found[0], all...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.Output()
	if err != nil {
		var stderr []byte
		if exit, ok := err.(*exec.ExitError); ok {
			stderr = exit.Stderr
		}
		return nil, fmt.Errorf("stock.py %s: %w\n%s", what, err, stderr)
	}
	return out, nil
}

type dump struct {
	Listed   map[string]string
	Occupied int
	Hidden   string
}

func stockDump(t *testing.T, b *Bank) dump {
	t.Helper()
	out, err := stock(t, b, "dump")
	require.NoError(t, err)
	var d dump
	require.NoError(t, json.Unmarshal(out, &d))
	return d
}

func TestSaltReadsWhatWeWrite(t *testing.T) {
	b := bank(t, t.TempDir(), Keys, small())
	var changes []Change
	for i := range 25 {
		changes = append(changes, put(fmt.Sprintf("key-%d", i), strings.Repeat("v", 1+i*9)))
	}
	apply(t, b, changes...)
	for i := range 25 {
		changes[i] = put(fmt.Sprintf("key-%d", i), strings.Repeat("w", (i%3)*(200-i*8)))
	}
	apply(t, b, append(changes, Change{Key: HiddenPrefix, Value: []byte("secret"), Hidden: true})...)
	d := stockDump(t, b)
	if want := values(read(t, b)); !maps.Equal(d.Listed, want) || d.Occupied != len(want) || d.Hidden != "secret" {
		t.Errorf("Salt reads %+v, not %v", d, want)
	}
}

// TestWritingBesideSalt has two processes of Salt and one of ours change one bank at once. Each knows its own keys.
func TestWritingBesideSalt(t *testing.T) {
	b := bank(t, t.TempDir(), Keys, Geometry{Slots: 67, SlotSize: 48, KeySize: 20})
	apply(t, b, Change{Key: HiddenPrefix, Value: []byte("secret"), Hidden: true})
	if _, err := stock(t, b, "dump"); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	done := make(chan struct{})
	for _, name := range []string{"one", "two"} {
		wg.Go(func() {
			out, err := stock(t, b, "hammer", "150", name)
			var have map[string]string
			if err == nil {
				err = json.Unmarshal(out, &have)
			}
			check.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(want, have)
		})
	}
	go func() { // ends with the two
		wg.Wait()
		close(done)
	}()
	ours := map[string]string{}
	rng := rand.New(rand.NewPCG(1, 2))
	for n, running := 0, true; running; n++ {
		select {
		case <-done:
			running = false
		default:
		}
		key, value := fmt.Sprintf("go%d", rng.IntN(8)), fmt.Sprintf("%d-%s", n, strings.Repeat("y", rng.IntN(40)))
		if rng.IntN(3) == 0 {
			value = ""
		}
		apply(t, b, put(key, value))
		if ours[key] = value; value == "" {
			delete(ours, key)
		}
		c, err := b.Read(t.Context(), nil, n%2 == 0)
		if err != nil || c.Entries[key].Damaged || string(c.Entries[key].Value) != value {
			t.Fatalf("%s: %+v, %v", key, c.Entries[key], err)
		}
	}
	maps.Copy(want, ours)
	c, err := b.Read(t.Context(), nil, true)
	if err == nil && c.Inconsistent { // Salt's processes may have lost entries of the roster to each other
		err = b.Repair(t.Context())
	}
	require.NoError(t, err)
	if got := values(read(t, b)); !maps.Equal(got, want) {
		t.Errorf("we read %v\nnot %v", got, want)
	}
	if d := stockDump(t, b); !maps.Equal(d.Listed, want) || d.Hidden != "secret" {
		t.Errorf("Salt reads %v\nnot %v", d, want)
	}
}
