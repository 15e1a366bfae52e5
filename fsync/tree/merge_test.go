package tree

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"saltclusterd/integration/require"
)

// build makes a tree of a map of paths to contents: "text", "->target" for a symlink, "/" for an empty directory; a
// number after a space is the mode.
func build(t require.T, put Memory, files map[string]string) Hash {
	type dir map[string]any
	top := dir{}
	for p, content := range files {
		cur := top
		parts := strings.Split(p, "/")
		for _, n := range parts[:len(parts)-1] {
			sub, ok := cur[n].(dir)
			if !ok {
				sub = dir{}
				cur[n] = sub
			}
			cur = sub
		}
		name := parts[len(parts)-1]
		if content == "/" {
			if _, ok := cur[name].(dir); !ok {
				cur[name] = dir{}
			}
		} else if _, ok := cur[name].(dir); !ok {
			cur[name] = content
		}
	}
	var make func(dir) Hash
	make = func(d dir) Hash {
		var out []Entry
		for n, v := range d {
			switch v := v.(type) {
			case dir:
				out = append(out, Entry{Name: n, Type: Dir, Mode: 0o755, Object: make(v)})
			case string:
				if target, ok := strings.CutPrefix(v, "->"); ok {
					out = append(out, Entry{Name: n, Type: Symlink, Target: target})
					continue
				}
				text, mode := v, uint16(0o644)
				if i := strings.IndexByte(v, ' '); i >= 0 {
					text = v[:i]
					_, _ = fmt.Sscanf(v[i+1:], "%o", &mode)
				}
				out = append(out, Entry{Name: n, Type: File, Mode: mode, Chunks: []Chunk{{Sum([]byte(text)), uint32(len(text))}}})
			}
		}
		h, err := put.PutDir(out)
		require.NoError(t, err)
		return h
	}
	return make(top)
}

// leaves lists what a tree has that is no directory, with empty directories.
func leaves(t require.T, o Objects, dir Hash) map[string]Entry {
	out := map[string]Entry{}
	err := Walk(o, dir, func(p string, e *Entry) error {
		if inside, _ := ReadDir(o, e.Object); e.Type != Dir || len(inside) == 0 {
			out[p] = *e
		}
		return nil
	})
	require.NoError(t, err)
	return out
}

func TestMergeTable(t *testing.T) {
	base := map[string]string{"a": "1", "b": "1", "d/x": "1", "d/y": "1", "l": "->a"}
	with := func(changes ...string) map[string]string {
		out := maps.Clone(base)
		for i := 0; i < len(changes); i += 2 {
			if changes[i+1] == "" {
				delete(out, changes[i])
			} else {
				out[changes[i]] = changes[i+1]
			}
		}
		return out
	}
	for _, c := range []struct {
		name               string
		ours, theirs, want map[string]string
		lost               string
	}{
		{"nothing", base, base, base, ""},
		{"only ours", with("a", "2", "n", "1"), base, with("a", "2", "n", "1"), ""},
		{"only theirs", base, with("b", "", "d/z", "1"), with("b", "", "d/z", "1"), ""},
		{"different paths", with("a", "2", "d/x", ""), with("b", "2", "d/z", "1"),
			with("a", "2", "b", "2", "d/x", "", "d/z", "1"), ""},
		{"the same edit", with("a", "2"), with("a", "2"), with("a", "2"), ""},
		{"both edit", with("a", "ours"), with("a", "theirs"), with("a", "theirs"), "a"},
		{"both add", with("n", "ours"), with("n", "theirs"), with("n", "theirs"), "n"},
		{"content and mode", with("a", "2"), with("a", "1 600"), with("a", "2 600"), ""},
		{"edit against delete", with("a", "2"), with("a", ""), with("a", "2"), ""},
		{"delete against edit", with("a", ""), with("a", "2"), with("a", "2"), ""},
		{"directory deleted, edited in it", with("d/x", "", "d/y", ""), with("d/x", "2"), with("d/x", "2", "d/y", ""), ""},
		{"edited in it, directory deleted", with("d/x", "2", "d/n", "1"), with("d/x", "", "d/y", ""),
			with("d/x", "2", "d/n", "1", "d/y", ""), ""},
		{"both links", with("l", "->ours"), with("l", "->theirs"), with("l", "->theirs"), "l"},
		{"file to directory, edited", with("a", "", "a/in", "1"), with("a", "2"), with("a", "2"), "a/in"},
		{"edited, file to directory", with("a", "2"), with("a", "", "a/in", "1"), with("a", "", "a/in", "1"), "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Memory{}
			got, lost, err := Merge(o, o, build(t, o, base), build(t, o, c.ours), build(t, o, c.theirs))
			require.NoError(t, err)
			if want := build(t, o, c.want); got != want {
				t.Errorf("merged %v, want %v", leaves(t, o, got), leaves(t, o, want))
			}
			var paths []string
			for _, l := range lost {
				paths = append(paths, l.Path)
			}
			if strings.Join(paths, ",") != c.lost {
				t.Errorf("lost %q, want %q", paths, c.lost)
			}
		})
	}
}

func treeGen() *rapid.Generator[map[string]string] {
	paths := rapid.SampledFrom([]string{"a", "b", "c", "c/x", "c/y", "c/y/z", "d/x", "d"})
	contents := rapid.SampledFrom([]string{"1", "2", "3", "1 600", "->a", "->b", "/"})
	return rapid.MapOfN(paths, contents, 0, 6)
}

// Nothing is lost silently: what we have that base does not is in the result, in theirs, or in the losses.
func TestMergeLosesNothingSilently(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Memory{}
		base, ours, theirs := build(t, o, treeGen().Draw(t, "base")), build(t, o, treeGen().Draw(t, "ours")), build(t, o,
			treeGen().Draw(t, "theirs"))
		merged, losses, err := Merge(o, o, base, ours, theirs)
		require.NoError(t, err)
		b, u, th, m := leaves(t, o, base), leaves(t, o, ours), leaves(t, o, theirs), leaves(t, o, merged)
		lost := map[string]bool{}
		for _, l := range losses {
			lost[l.Path] = true
		}
		for p, e := range u {
			was, inBase := b[p]
			if e.Type == Dir || inBase && was.Same(&e) || lost[p] {
				continue
			}
			if now, ok := m[p]; !ok || !now.Same(&e) {
				t.Fatalf("our %q is gone: %+v", p, m)
			}
		}
		for p, e := range th {
			was, inBase := b[p]
			if e.Type == Dir || inBase && was.Same(&e) {
				continue
			}
			if now, ok := m[p]; !ok || !now.Same(&e) {
				t.Fatalf("their %q is gone: %+v", p, m)
			}
		}
		if again, _, err := Merge(o, o, base, base, theirs); err != nil || again != theirs {
			t.Fatal("without our edits the result is not theirs")
		}
		if again, _, err := Merge(o, o, base, ours, base); err != nil || again != ours {
			t.Fatal("without their edits the result is not ours")
		}
	})
}

// What is edited after a proposal of which nobody knows whether it is part of theirs is no conflict with it.
func TestAdvance(t *testing.T) {
	base := map[string]string{"a": "1", "b": "1", "d/x": "1", "d/y": "1", "l": "->one"}
	with := func(from map[string]string, changes ...string) map[string]string {
		m := maps.Clone(from)
		for i := 0; i < len(changes); i += 2 {
			if m[changes[i]] = changes[i+1]; changes[i+1] == "" {
				delete(m, changes[i])
			}
		}
		return m
	}
	proposed := with(base, "a", "2", "b", "", "d/x", "2", "d/n", "1", "new/f", "1")
	for name, c := range map[string]struct {
		ours, theirs, want map[string]string
		lost               string
	}{
		"it is theirs": {
			with(proposed, "a", "3", "b", "3", "d/x", "", "new/f", "2"), proposed,
			with(proposed, "a", "3", "b", "3", "d/x", "", "new/f", "2"), "",
		},
		"with edits of others": {
			with(proposed, "a", "3", "d/n", ""), with(proposed, "l", "->two", "d/y", "5", "new/g", "1", "other", "1"),
			with(proposed, "a", "3", "d/n", "", "l", "->two", "d/y", "5", "new/g", "1", "other", "1"), "",
		},
		"it never was": {
			with(proposed, "a", "3"), with(base, "l", "->two"),
			with(proposed, "a", "3", "l", "->two"), "",
		},
		"others edited what it had, or without it": { // nobody can tell; it is put aside
			with(proposed, "new/f", ""), with(proposed, "a", "9"),
			with(proposed, "new/f", "", "a", "9"), "a",
		},
		"all of it is removed here": {
			with(proposed, "new/f", "", "d/x", "", "d/y", "", "d/n", ""), with(proposed, "other", "1"),
			with(proposed, "new/f", "", "d/x", "", "d/y", "", "d/n", "", "other", "1"), "",
		},
		"it removed a directory": {
			with(base, "d/x", "3", "d/y", ""), with(base, "d/x", "", "d/y", ""),
			with(base, "d/x", "3", "d/y", ""), "",
		},
		"only permissions were changed since": {
			with(proposed, "a", "3"), with(proposed, "a", "2 600"),
			with(proposed, "a", "3 600"), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := Memory{}
			p := proposed
			if name == "it removed a directory" {
				p = with(base, "d/x", "", "d/y", "")
			}
			b, ours, theirs := build(t, o, base), build(t, o, c.ours), build(t, o, c.theirs)
			next, err := Advance(o, o, b, build(t, o, p), theirs)
			require.NoError(t, err)
			got, lost, err := Merge(o, o, next, ours, theirs)
			var paths []string
			for _, l := range lost {
				paths = append(paths, l.Path)
			}
			if want := build(t, o, c.want); err != nil || got != want || strings.Join(paths, ",") != c.lost {
				t.Errorf("merged %v, want %v; lost %q, want %q; %v", leaves(t, o, got), leaves(t, o, want), paths, c.lost, err)
			}
		})
	}
}

func TestAdvanceGoesNowhereElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Memory{}
		base, proposed, theirs := build(t, o, treeGen().Draw(t, "base")), build(t, o, treeGen().Draw(t, "proposed")), build(t,
			o, treeGen().Draw(t, "theirs"))
		advance := func(base, proposed, theirs Hash) Hash {
			got, err := Advance(o, o, base, proposed, theirs)
			require.NoError(t, err)
			return got
		}
		if got := advance(base, proposed, proposed); got != proposed {
			t.Fatal("a proposal that is theirs is not the base")
		}
		if got := advance(base, base, theirs); got != base {
			t.Fatal("a proposal that changes nothing moves the base")
		}
		b, p, th := leaves(t, o, base), leaves(t, o, proposed), leaves(t, o, theirs)
		for path, e := range leaves(t, o, advance(base, proposed, theirs)) {
			was, inBase := b[path]
			now, inProposed := p[path]
			given, inTheirs := th[path]
			switch {
			case e.Type == Dir, inBase && was.Same(&e):
			case !inProposed || !now.Same(&e) || !inTheirs || !given.Same(&e):
				t.Fatalf("%q is neither of the base nor of what was proposed and is theirs", path)
			}
		}
	})
}

func TestDiff_AppliedGivesTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Memory{}
		from, to := build(t, o, treeGen().Draw(t, "from")), build(t, o, treeGen().Draw(t, "to"))
		all := func(h Hash) map[string]Entry {
			out := map[string]Entry{}
			_ = Walk(o, h, func(p string, e *Entry) error {
				c := *e
				c.Object = Hash{}
				out[p] = c
				return nil
			})
			return out
		}
		got, want := all(from), all(to)
		err := Diff(o, from, to, func(c Change) error {
			if c.To == nil {
				delete(got, c.Path)
			} else {
				e := *c.To
				e.Object = Hash{}
				got[c.Path] = e
			}
			return nil
		})
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%v\n is not\n%v (%v)", got, want, err)
		}
	})
}
