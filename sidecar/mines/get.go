package mines

import (
	"context"
	"slices"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
)

// Names in an entry that says who may read it (salt/utils/mine.py).
const (
	aclMark = "__saltmine_acl__"
	aclData = "__data__"
)

// maxReply bounds an answer; peers carry 64 MiB.
const maxReply = 48 << 20

// get is RemoteFuncs._mine_get: what the minions of a target have in their mines under some names, as far as the one that asks may see
// it.
func (s *Service) get(ctx context.Context, set *Settings, minion string, d saltvalue.Fields) ([]byte, error) {
	if set.unread != "" {
		return nil, saltvalue.Needs("%s", set.unread)
	}
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	functions, named, err := functions(d)
	if err != nil {
		return nil, err
	}
	if set.acl != nil {
		if set.acl.nothing {
			return emptyMap, nil
		}
		if !plain(minion) || slices.ContainsFunc(functions, func(f string) bool { return !plain(f) }) {
			return nil, saltvalue.Needs("a name with a line feed")
		}
		if functions = set.acl.allowed(minion, functions); len(functions) == 0 {
			return emptyMap, nil
		}
	}
	kind, target, err := target(d)
	if err != nil {
		return nil, err
	}
	files, err := openFiles(set)
	if err != nil {
		return nil, err
	}
	defer files.close()
	r := &reader{set: set, keys: s.c.Keys, files: files, minion: minion, functions: functions, named: named, allowed: map[string]*crowd{}}
	who, err := r.match(kind, target)
	if err != nil {
		return nil, err
	}
	for _, id := range who.ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.read(id); err != nil {
			return nil, err
		}
	}
	return r.reply(), nil
}

// functions are the names that are asked for, each once; named: the answer tells them apart.
func functions(d saltvalue.Fields) (names []string, named bool, err error) {
	raw, ok := d.Get("fun")
	if !ok {
		return nil, false, saltvalue.Needs("a question for nothing")
	}
	list, named := saltvalue.ParseList(raw)
	if !named {
		text, ok := saltvalue.Text(raw)
		if !ok {
			return nil, false, saltvalue.Needs("a function that is neither text nor a list")
		}
		names = unique(strings.Split(text, ","))
		return names, len(names) > 1, nil
	}
	for _, e := range list {
		name, ok := saltvalue.Text(e)
		if !ok {
			return nil, false, saltvalue.Needs("the name of a function that is not text")
		}
		names = append(names, name)
	}
	return unique(names), true, nil
}

// unique keeps the first of equal names.
func unique(names []string) []string {
	seen := make(map[string]struct{}, len(names))
	return slices.DeleteFunc(names, func(name string) bool {
		_, again := seen[name]
		seen[name] = struct{}{}
		return again
	})
}

// target is whose mines are asked for.
func target(d saltvalue.Fields) (kind string, tgt []byte, err error) {
	tgt, ok := d.Get("tgt")
	if !ok {
		return "", nil, saltvalue.Needs("a question to nobody")
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

	allowed map[string]*crowd // whom entries allow, by what they say
	found   []found
	size    int
}

// found is what one minion's mine has under one name, as it is sent.
type found struct {
	function int
	id       string
	value    []byte
}

// read looks into one minion's mine.
func (r *reader) read(id string) error {
	raw, err := r.files.mine(id)
	if err != nil || raw == nil {
		return err
	}
	if rest, err := msgp.Skip(raw); err != nil || len(rest) > 0 || !saltvalue.IsMap(raw) {
		return saltvalue.Needs("a file that holds no mine")
	}
	mine, _ := saltvalue.ParseFields(raw)
	if err := ours(mine); err != nil {
		return err
	}
	for i, function := range r.functions {
		value, ok := mine.Get(function)
		if !ok {
			continue
		}
		value, visible, err := r.visible(id, function, value)
		if err != nil {
			return err
		}
		if !visible {
			continue
		}
		sent, _, err := saltvalue.AppendWire(make([]byte, 0, len(value)), value)
		if err != nil {
			return err
		}
		if r.size += len(sent) + len(id) + 8; r.size > maxReply {
			return saltvalue.Needs("an answer of more than %d bytes", maxReply)
		}
		r.found = append(r.found, found{i, id, sent})
	}
	return nil
}

// visible takes what an entry holds out of what says who may read it.
func (r *reader) visible(id, function string, entry []byte) (value []byte, yes bool, err error) {
	e, ok := saltvalue.ParseFields(entry)
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
	key := kind + " " + string(tgt)
	who := r.allowed[key]
	if who == nil {
		if who, err = r.match(kind, tgt); err != nil {
			return nil, false, err
		}
		r.allowed[key] = who
	}
	return value, who.has(r.minion), nil
}

// reply is {id: value}, or {function: {id: value}}.
func (r *reader) reply() []byte {
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
