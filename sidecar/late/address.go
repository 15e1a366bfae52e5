package late

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"saltclusterd/sidecar/saltwire"
)

// maxLeftOut bounds the ids that one target leaves out, in bytes.
const maxLeftOut = 16 << 10

// ErrTarget says that a publication's target cannot be written so that it leaves minions out.
var ErrTarget = errors.New("target cannot leave minions out")

// engines are the letters of the compound matcher for what else a target may be (salt/matchers/compound_match.py).
var engines = map[string]string{
	"glob": "", "pcre": "E@", "list": "L@", "grain": "G@", "grain_pcre": "P@", "pillar": "I@", "pillar_pcre": "J@",
	"ipcidr": "S@",
}

// operators are words of a compound target that mean something else than a minion's name.
var operators = []string{"and", "or", "not", "(", ")"}

// Address returns the load of a publication, which saltwire.PeekPub accepts, with a target that matches the minions it
// matched but those left out: "( TARGET ) and * and not L@a,b". The star is for the resources that a minion of 3008 may
// manage: they take every job, whatever the minion remembers, but a resource does not match a name (salt/minion.py
// _resource_term_matches). It returns an error that wraps ErrTarget when such a line cannot hold the target or a name.
func Address(plain []byte, leaveOut []string) ([]byte, error) {
	t, err := readTarget(plain)
	if err != nil {
		return nil, err
	}
	words, isList, err := t.compoundWords()
	if err != nil {
		return nil, err
	}
	words = append(append([]string{"("}, words...), ")", "and", "*")
	if len(leaveOut) > 0 {
		names := strings.Join(leaveOut, ",")
		if len(names) > maxLeftOut {
			return nil, fmt.Errorf("%d minions have started since: %w", len(leaveOut), ErrTarget)
		}
		if strings.ContainsFunc(names, isSeparator) || strings.Count(names, ",") != len(leaveOut)-1 {
			return nil, fmt.Errorf("name of a minion: %w", ErrTarget)
		}
		words = append(words, "and", "not", "L@"+names)
	}
	out, err := saltwire.ReplaceValue(plain, "tgt", appendWords(nil, words, isList))
	if err != nil {
		return nil, fmt.Errorf("replace the target: %w", err)
	}
	if out, err = saltwire.ReplaceValue(out, "tgt_type", saltwire.AppendRaw(nil, "compound")); err != nil {
		return nil, fmt.Errorf("replace the target: %w", err)
	}
	return out, nil
}

// isSeparator tells what Python's str.split ends a word at, and more.
func isSeparator(r rune) bool { return r <= ' ' || r > '~' }

// ofResources tells of a term that is about resources of 3008. A target of nothing else is not for the minion that
// manages them, which it would be with a star in it (salt/minion.py _is_pure_resource_target).
func ofResources(word string) bool {
	return strings.HasPrefix(word, "T@") || strings.HasPrefix(word, "M@")
}

// isBalanced tells whether each parenthesis is closed, and none that was not opened: what stands behind belongs to the
// whole then.
func isBalanced(words []string) bool {
	depth := 0
	for _, w := range words {
		switch w {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth < 0 {
			return false
		}
	}
	return depth == 0 && len(words) > 0
}

func appendWords(dst []byte, words []string, isList bool) []byte {
	if !isList {
		return saltwire.AppendRaw(dst, strings.Join(words, " "))
	}
	dst = saltwire.AppendArrayHeader(dst, len(words))
	for _, w := range words {
		dst = saltwire.AppendRaw(dst, w)
	}
	return dst
}

// target is what a publication says about whom it is for.
type target struct {
	kind  string
	text  string
	list  []string
	isSet bool // kind is there
}

func readTarget(plain []byte) (t target, err error) {
	err = saltwire.WalkMap(plain, func(key, value []byte) error {
		switch string(key) {
		case "tgt_type":
			b, ok := saltwire.Bytes(value)
			t.kind, t.isSet = string(b), ok
		case "delimiter":
			if b, ok := saltwire.Bytes(value); !ok || string(b) != ":" {
				return fmt.Errorf("delimiter: %w", ErrTarget)
			}
		case "tgt":
			if b, ok := saltwire.Bytes(value); ok {
				t.text = string(b)
				return nil
			}
			t.list = []string{}
			return saltwire.WalkArray(value, func(value []byte) error {
				b, ok := saltwire.Bytes(value)
				if !ok {
					return fmt.Errorf("name in a list: %w", ErrTarget)
				}
				t.list = append(t.list, string(b))
				return nil
			})
		}
		return nil
	})
	if err == nil && !t.isSet {
		err = fmt.Errorf("no tgt_type: %w", ErrTarget)
	}
	return t, err
}

// hasSameTarget says whether two publications of one job are for the same minions. nil is the load of one that was too
// large to be kept.
func hasSameTarget(a, b []byte) bool {
	if bytes.Equal(a, b) || a == nil || b == nil {
		return (a == nil) == (b == nil)
	}
	kindA, targetA := rawTarget(a)
	kindB, targetB := rawTarget(b)
	return bytes.Equal(kindA, kindB) && bytes.Equal(targetA, targetB)
}

// rawTarget returns tgt_type and tgt as they are in a load; nil: they are not.
func rawTarget(plain []byte) (kind, target []byte) {
	_ = saltwire.WalkMap(plain, func(key, value []byte) error { // a load that is none has no target
		switch string(key) {
		case "tgt_type":
			kind = value
		case "tgt":
			target = value
		}
		return nil
	})
	return kind, target
}

// compoundWords returns the target as a part of a compound one, and whether that is to be a list.
func (t target) compoundWords() (words []string, isList bool, err error) {
	if t.kind == "compound" {
		list := t.list
		if list == nil {
			list = strings.Fields(t.text)
		}
		if !isBalanced(list) || slices.ContainsFunc(list, ofResources) {
			return nil, false, fmt.Errorf("compound %q: %w", list, ErrTarget)
		}
		return slices.Clone(list), t.list != nil, nil
	}
	engine, ok := engines[t.kind]
	if !ok {
		return nil, false, fmt.Errorf("tgt_type %q: %w", t.kind, ErrTarget)
	}
	text := t.text
	if t.list != nil {
		if t.kind != "list" {
			return nil, false, fmt.Errorf("list as %s: %w", t.kind, ErrTarget)
		}
		if slices.ContainsFunc(t.list, func(id string) bool { return id == "" || strings.Contains(id, ",") }) {
			return nil, false, fmt.Errorf("name in a list: %w", ErrTarget)
		}
		text = strings.Join(t.list, ",")
	}
	switch {
	case text == "" || strings.ContainsFunc(text, isSeparator):
		return nil, false, fmt.Errorf("a target with blanks: %w", ErrTarget)
	case engine == "" && (strings.Contains(text, "@") || slices.Contains(operators, text)):
		return nil, false, fmt.Errorf("a name like a term: %w", ErrTarget)
	}
	return []string{engine + text}, false, nil
}
