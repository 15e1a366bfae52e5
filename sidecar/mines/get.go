package mines

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
)

// Names in an entry that says who may read it (salt/utils/mine.py).
const (
	aclMark = "__saltmine_acl__"
	aclData = "__data__"
)

// What one question may cost here; a master answers what goes beyond.
const (
	maxReply     = 48 << 20 // bytes of an answer; peers carry 64 MiB
	maxFound     = 500_000  // values in it
	maxFunctions = 1_000    // names of functions
	maxTargets   = 20_000   // ids in a target
	maxGlob      = 1 << 10  // bytes of a glob
	maxAllowed   = 256      // distinct allow_tgt of the entries it comes upon
	maxEntries   = 20_000   // of a mine, and of an entry
)

// getMines is RemoteFuncs._mine_get: what the minions of a target have in their mines under some names, as far as the
// one that asks may see it.
func (s *Service) getMines(ctx context.Context, set *Settings, minion string, load []byte) ([]byte, error) {
	if set.unread != "" {
		return nil, saltvalue.Needs("%s", set.unread)
	}
	if err := s.takePlace(ctx); err != nil {
		return nil, err
	}
	defer func() { <-s.reading }()
	d, err := parseOwnLoad(minion, load) // not before: it takes many times its size
	if err != nil {
		return nil, err
	}
	functions, named, err := readFunctions(d)
	if err != nil {
		return nil, err
	}
	if set.acl != nil {
		if set.acl.nothing {
			return emptyMap, nil
		}
		if !isOneLine(minion) || slices.ContainsFunc(functions, func(f string) bool { return !isOneLine(f) }) {
			return nil, saltvalue.Needs("a name with a line feed")
		}
		if functions = set.acl.allowedFunctions(minion, functions); len(functions) == 0 {
			return emptyMap, nil
		}
	}
	kind, target, err := readTarget(d)
	if err != nil {
		return nil, err
	}
	files, err := openFiles(set)
	if err != nil {
		return nil, err
	}
	defer files.close()
	r := &reader{set: set, keys: s.c.Keys, files: files, minion: minion, functions: functions, named: named,
		allowed: map[[sha256.Size]byte]bool{}}
	ids, err := r.matchMinions(ctx, kind, target)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := r.readMine(ctx, id); err != nil {
			return nil, err
		}
	}
	return r.encodeReply(), nil
}

// placeTimeout is how long a question waits for its turn: the master must have time to answer it instead.
const placeTimeout = 2 * time.Second

// takePlace waits for one of the places in reading.
func (s *Service) takePlace(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.reading <- struct{}{}:
		return nil
	default:
	}
	late := time.NewTimer(placeTimeout)
	defer late.Stop()
	select {
	case s.reading <- struct{}{}:
		return nil
	case <-late.C:
		return saltvalue.Needs("too many questions at a time")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readFunctions are the names that are asked for, each once; named: the answer tells them apart.
func readFunctions(d saltvalue.Fields) (names []string, named bool, err error) {
	raw, ok := d.Get("fun")
	if !ok {
		return nil, false, saltvalue.Needs("a question for nothing")
	}
	if text, ok := saltvalue.Text(raw); ok {
		if strings.Count(text, ",") >= maxFunctions {
			return nil, false, saltvalue.Needs("more than %d functions", maxFunctions)
		}
		names = dropRepeated(strings.Split(text, ","))
		return names, len(names) > 1, nil
	}
	if names, err = readTexts(raw, maxFunctions); err != nil {
		return nil, false, err
	}
	return dropRepeated(names), true, nil
}

// readTexts are the elements of a list of text, of so many at most.
func readTexts(raw []byte, most uint32) ([]string, error) {
	if !saltvalue.IsList(raw) {
		return nil, saltvalue.Needs("names that are neither text nor a list")
	}
	if n, _, err := msgp.ReadArrayHeaderBytes(raw); err != nil || n > most {
		return nil, saltvalue.Needs("a list of more than %d names", most)
	}
	list, _ := saltvalue.ParseList(raw)
	names := make([]string, 0, len(list))
	for _, e := range list {
		name, ok := saltvalue.Text(e)
		if !ok {
			return nil, saltvalue.Needs("a name that is not text")
		}
		names = append(names, name)
	}
	return names, nil
}

// readFields splits a map that is not too large.
func readFields(raw []byte) (f saltvalue.Fields, isMap bool, err error) {
	if !saltvalue.IsMap(raw) {
		return nil, false, nil
	}
	if n, _, err := msgp.ReadMapHeaderBytes(raw); err != nil || n > maxEntries {
		return nil, true, saltvalue.Needs("a map of more than %d entries", maxEntries)
	}
	f, isMap = saltvalue.ParseFields(raw)
	return f, isMap, nil
}

// dropRepeated keeps the first of equal names.
func dropRepeated(names []string) []string {
	seen := make(map[string]struct{}, len(names))
	return slices.DeleteFunc(names, func(name string) bool {
		_, again := seen[name]
		seen[name] = struct{}{}
		return again
	})
}

// readTarget is whose mines are asked for.
func readTarget(d saltvalue.Fields) (kind string, tgt []byte, err error) {
	tgt, ok := d.Get("tgt")
	if !ok {
		return "", nil, saltvalue.Needs("a question without a target")
	}
	raw, has := d.Get("tgt_type")
	if old, ok := d.Get("expr_form"); ok && !isNil(old) && !has {
		raw, has = old, true
	}
	if !has {
		return globKind, tgt, nil
	}
	if kind, ok = saltvalue.Text(raw); !ok {
		return "", nil, saltvalue.Needs("a target of a type that is not text")
	}
	return kind, tgt, nil
}

// reader collects an answer.
type reader struct {
	set       *Settings
	keys      Keys
	files     *files
	minion    string // who asks
	functions []string
	named     bool

	// whether entries allow the one that asks, by the hash of what they say, which may be long
	allowed map[[sha256.Size]byte]bool
	found   []found
	size    int
}

// found is what one minion's mine has under one name, as it is sent.
type found struct {
	function int
	id       string
	value    []byte
}

// readMine looks into one minion's mine.
func (r *reader) readMine(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	raw, err := r.files.readMine(id)
	if err != nil || raw == nil {
		return err
	}
	if rest, err := msgp.Skip(raw); err != nil || len(rest) > 0 || !saltvalue.IsMap(raw) {
		return saltvalue.Needs("a file that holds no mine")
	}
	mine, _, err := readFields(raw)
	if err != nil {
		return err
	}
	if err := checkExpiry(mine); err != nil {
		return err
	}
	get := lookupFunc(mine, len(r.functions))
	for i, function := range r.functions {
		value, ok := get(function)
		if !ok {
			continue
		}
		if err := r.addEntry(ctx, i, id, value); err != nil {
			return err
		}
	}
	return nil
}

// fewLooks is how many entries may be looked at to find what is asked for, until an index is cheaper.
const fewLooks = 1_000

// lookupFunc is Fields.Get for as many names.
func lookupFunc(mine saltvalue.Fields, names int) func(name string) ([]byte, bool) {
	if len(mine)*names <= fewLooks {
		return mine.Get
	}
	index := make(map[string][]byte, len(mine))
	for _, e := range slices.Backward(mine) { // the first of equal ones, as with Get
		if name, ok := saltvalue.Text(e.Key); ok {
			index[name] = e.Val
		}
	}
	return func(name string) ([]byte, bool) {
		value, ok := index[name]
		return value, ok
	}
}

// addEntry adds what a mine has under the name of a function, if the one that asks may see it.
func (r *reader) addEntry(ctx context.Context, function int, id string, entry []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	value, visible, err := r.visibleValue(id, r.functions[function], entry)
	if err != nil || !visible {
		return err
	}
	sent, _, err := saltvalue.AppendWire(make([]byte, 0, len(value)), value)
	if err != nil {
		return err
	}
	if r.size += len(sent) + len(id) + 8; r.size > maxReply || len(r.found) == maxFound {
		return saltvalue.Needs("an answer of more than %d bytes or %d values", maxReply, maxFound)
	}
	r.found = append(r.found, found{function, id, sent})
	return nil
}

// visibleValue takes what an entry holds out of what says who may read it.
func (r *reader) visibleValue(id, function string, entry []byte) (value []byte, yes bool, err error) {
	e, ok, err := readFields(entry)
	if err != nil {
		return nil, false, err
	}
	if !ok || !e.Has(aclMark) {
		return entry, true, nil
	}
	if value, ok = e.Get(aclData); !ok {
		return nil, false, saltvalue.Needs("an entry without data")
	}
	tgt, ok := e.Get("allow_tgt")
	if !ok {
		return value, true, nil
	}
	if strings.Contains(id, ":") || strings.Contains(function, ":") {
		return nil, false, saltvalue.Needs("an entry with a colon in its name, which the master takes apart")
	}
	kind := globKind
	if raw, ok := e.Get("allow_tgt_type"); ok {
		if kind, ok = saltvalue.Text(raw); !ok {
			return nil, false, saltvalue.Needs("an entry for a target of a type that is not text")
		}
	}
	yes, err = r.isInTarget(kind, tgt)
	return value, yes, err
}

// isInTarget says whether the one that asks is in a target.
func (r *reader) isInTarget(kind string, tgt []byte) (bool, error) {
	if kind != globKind && kind != listKind {
		return false, needsKind(kind)
	}
	h := sha256.New()
	h.Write([]byte(kind))
	h.Write(tgt)
	key := [sha256.Size]byte(h.Sum(nil))
	if yes, known := r.allowed[key]; known {
		return yes, nil
	}
	if len(r.allowed) == maxAllowed {
		return false, saltvalue.Needs("entries for more than %d targets", maxAllowed)
	}
	who, err := r.parseTarget(kind, tgt)
	if err != nil {
		return false, err
	}
	yes := who.hasMinion(r.minion) && r.isAccepted(r.minion)
	r.allowed[key] = yes
	return yes, nil
}

// encodeReply is {id: value}, or {function: {id: value}}.
func (r *reader) encodeReply() []byte {
	dst := make([]byte, 0, r.size+64)
	if !r.named {
		dst = saltwire.AppendMapHeader(dst, len(r.found))
		for _, f := range r.found {
			dst = append(saltwire.AppendRaw(dst, f.id), f.value...)
		}
		return dst
	}
	slices.SortStableFunc(r.found, func(a, b found) int { return a.function - b.function })
	groups := 0
	for i, f := range r.found {
		if i == 0 || f.function != r.found[i-1].function {
			groups++
		}
	}
	dst = saltwire.AppendMapHeader(dst, groups)
	for from := 0; from < len(r.found); {
		to := from + 1
		for to < len(r.found) && r.found[to].function == r.found[from].function {
			to++
		}
		dst = saltwire.AppendMapHeader(saltwire.AppendRaw(dst, r.functions[r.found[from].function]), to-from)
		for _, f := range r.found[from:to] {
			dst = append(saltwire.AppendRaw(dst, f.id), f.value...)
		}
		from = to
	}
	return dst
}
