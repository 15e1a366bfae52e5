package config

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"saltclusterd/integration/require"
)

// Every field of Config has exactly one row, so that no option can be
// forgotten in the file, in show or in the checks.
func TestTableCoversConfig(t *testing.T) {
	c := DefaultConfig()
	rows := map[uintptr]string{}
	for _, o := range Options() {
		address := reflect.ValueOf(o.field(&c)).Pointer()
		if other, taken := rows[address]; taken {
			t.Errorf("%s and %s are the same field", o.Name, other)
		}
		rows[address] = o.Name
		o.currentValue(&c) // panics for a type that nothing handles
	}
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			if field := v.Field(i); field.Kind() == reflect.Struct && field.Type() != reflect.TypeFor[Secret]() {
				walk(field, path+f.Name+".")
			} else if rows[field.Addr().Pointer()] == "" {
				t.Errorf("no option sets %s%s", path, f.Name)
			}
		}
	}
	walk(reflect.ValueOf(&c).Elem(), "")
}

func TestRowsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range Options() {
		if seen[o.Name] {
			t.Errorf("%s twice", o.Name)
		}
		seen[o.Name] = true
		if !strings.HasSuffix(o.Doc, ".") || o.Section == "" {
			t.Errorf("%s: doc %q section %q", o.Name, o.Doc, o.Section)
		}
		if words := strings.Fields(o.Doc); len(words) < 6 || strings.HasPrefix(o.Doc, "The same") {
			t.Errorf("%s: %q does not say what it does", o.Name, o.Doc)
		}
		if listens := strings.HasSuffix(o.Name, "_port") || strings.HasSuffix(o.Name, "_listen"); listens && o.Applied != appliedAddress {
			t.Errorf("%s: a new address may need a restart, but the reference says %q", o.Name, o.Applied)
		}
	}
}

// Every example and every default in the default file must be accepted.
func TestDefaultFileUncommentedIsValid(t *testing.T) {
	var lines []string
	for line := range strings.Lines(string(DefaultFile())) {
		rest, commented := strings.CutPrefix(line, "#")
		name, _, isOption := strings.Cut(rest, ":")
		if commented && isOption && !strings.ContainsAny(name, " #") {
			switch name {
			case "cluster_secret_file": // only one of the two
				continue
			case "cluster_secret":
				rest = "cluster_secret: " + goodSecret + "\n"
			}
			lines = append(lines, rest)
		}
	}
	if len(lines) != len(Options())-1 {
		t.Errorf("%d of %d options in the file", len(lines), len(Options()))
	}
	if _, err := loadTest(write(t, map[string]string{"saltclusterd": strings.Join(lines, "")}), nil); err != nil {
		t.Error(err)
	}
}

func TestSuggest(t *testing.T) {
	for in, want := range map[string]string{
		"cluster_peer": "cluster_peers", "clusterid": "cluster_id", "interfaces": "interface", "retport": "ret_port",
		"publish_prot": "publish_port", "zzz": "", "": "", strings.Repeat("x", 1000): "",
	} {
		if got := Suggest(in, Names()); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestDistanceIsAMetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ab_]{0,8}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := editDistance(a, b)
		if (d == 0) != (a == b) || d != editDistance(b, a) || d > max(len(a), len(b)) ||
			d < max(len(a), len(b))-min(len(a), len(b)) {
			t.Fatalf("distance(%q, %q) = %d", a, b, d)
		}
	})
}

func TestSizes(t *testing.T) {
	for in, want := range map[string]Size{"0": 0, "65536": 64 * KiB, "64k": 64 * KiB, "1.5 MiB": 1536 * KiB,
		"2GB": 2 * GiB, "7b": 7} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("%q = %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "k", "-1", "1.2.3", "10 bananas", "99999999999999GiB", "NaN", "Inf"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("%q = %d", in, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want := Size(rapid.Int64Range(0, 1<<40).Draw(t, "size"))
		if got, err := ParseSize(want.String()); err != nil || got != want {
			t.Fatalf("%d -> %s -> %d, %v", want, want, got, err)
		}
	})
}

func TestDurations(t *testing.T) {
	for _, s := range []string{"NaN", "Inf", "-1", "1e300", "soon", "", "-5s"} {
		if d, err := parseDuration(s); err == nil {
			t.Errorf("%q = %v", s, d)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want, err := parseDuration(rapid.StringMatching(`[1-9][0-9]{0,4}(ms|s|m|h)`).Draw(t, "duration"))
		require.NoError(t, err)
		if got, err := parseDuration(formatDuration(want)); err != nil || got != want {
			t.Fatalf("%v -> %s -> %v, %v", want, formatDuration(want), got, err)
		}
	})
}
