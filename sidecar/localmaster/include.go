package localmaster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

const (
	maxConfigFile  = 16 << 20
	maxConfigFiles = 10_000
	maxIncludes    = 32 // depth; Salt would recurse until Python gives up
)

// confReader reads configuration files as salt.config.load_config and include_config do.
type confReader struct {
	setBy    map[string]string // top-level option → the file that set it last
	warnings []string
	files    int
	changes  Changes
}

// main reads the main file; one that is not there means no options.
func (r *confReader) main(path string) (map[string]any, error) {
	opts, err := r.readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]any{}, nil
	}
	if err != nil {
		return nil, err
	}
	r.noteOptions(opts, path)
	opts["conf_file"] = path
	return opts, nil
}

// readFile is _read_conf_file.
func (r *confReader) readFile(path string) (map[string]any, error) {
	if r.files++; r.files > maxConfigFiles {
		return nil, fmt.Errorf("read %s: more than %d configuration files", path, maxConfigFiles)
	}
	text, err := r.changes.readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	v, err := parseYAML(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, contentError{countedFromOne(err)})
	}
	if !pyTrue(v) {
		return map[string]any{}, nil
	}
	opts, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("read %s: %w", path, contentError{fmt.Errorf("should be a mapping of options, not a %T", v)})
	}
	if id, ok := opts["id"]; ok {
		opts["id"] = pyStr(id)
	}
	return opts, nil
}

// contentError is about what stands in a file.
type contentError struct{ error }

func (e contentError) Unwrap() error { return e.error }

func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfigFile+1))
	if err == nil && len(text) > maxConfigFile {
		err = fmt.Errorf("larger than %d bytes", maxConfigFile)
	}
	return text, err
}

// includeFiles is include_config: the globs' files merged, lists and maps of the same option put together. A file that
// holds something else is left out, as a stock master does. One that may not be read here is an error: the master reads
// it as root before it becomes its user, or does not start, and what stands in it may change everything.
func (r *confReader) includeFiles(globs any, from string, depth int) (map[string]any, error) {
	all := map[string]any{}
	if depth > maxIncludes {
		return nil, fmt.Errorf("%s: includes nest deeper than %d", from, maxIncludes)
	}
	for _, path := range stringList(globs) {
		path = expandUser(path)
		if !filepath.IsAbs(path) {
			path = osJoin(filepath.Dir(from), path)
		}
		for _, name := range r.changes.globFiles(path) {
			opts, err := r.readFile(name)
			if _, ok := errors.AsType[contentError](err); ok {
				r.addWarning("%v", err)
				continue
			}
			if err != nil && isGone(name) { // between the look at its directory and now
				continue
			}
			if err != nil {
				return nil, err
			}
			r.noteOptions(opts, name)
			if inner := opts["include"]; pyTrue(inner) {
				more, err := r.includeFiles(inner, name, depth+1)
				if err != nil {
					return nil, err
				}
				maps.Copy(opts, more)
			}
			dictUpdate(all, opts)
		}
	}
	return all, nil
}

func isGone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func (r *confReader) noteOptions(opts map[string]any, path string) {
	for key := range opts {
		r.setBy[key] = path
	}
}

func (r *confReader) addWarning(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// dictUpdate is salt.utils.dictupdate.update with merge_lists.
func dictUpdate(dest, upd map[string]any) {
	for key, value := range upd {
		switch old := dest[key].(type) {
		case map[string]any:
			if m, ok := value.(map[string]any); ok {
				dictUpdate(old, m)
				continue
			}
		case []any:
			if list, ok := value.([]any); ok {
				dest[key] = mergeLists(old, list)
				continue
			}
		}
		dest[key] = value
	}
}

func mergeLists(old, more []any) []any {
	merged := append([]any(nil), old...)
	for _, v := range more {
		known := false
		for _, have := range merged {
			known = known || reflect.DeepEqual(have, v)
		}
		if !known {
			merged = append(merged, v)
		}
	}
	return merged
}

// stringList reads an option that is a string or a list of strings.
func stringList(v any) []string {
	switch v := v.(type) {
	case string:
		if strings.TrimSpace(v) != "" {
			return []string{v}
		}
	case []any:
		out := make([]string, 0, len(v))
		for _, item := range v {
			if s, ok := item.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}
