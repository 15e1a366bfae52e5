package localmaster

import (
	"embed"
	"encoding/json"
	"fmt"
	"sync"
)

// defaultFiles hold DEFAULT_MASTER_OPTS of each release line (salt/config/__init__.py); defaults/dump.py wrote them.
//
//go:embed defaults/*.json
var defaultFiles embed.FS

// parsedDefaults reads the defaults of a release line once: what asks for the configuration may do so every second.
var parsedDefaults = map[int]func() (map[string]any, error){
	3006: parseDefaults(3006), 3007: parseDefaults(3007), 3008: parseDefaults(3008),
}

func parseDefaults(major int) func() (map[string]any, error) {
	return sync.OnceValues(func() (opts map[string]any, err error) {
		name := fmt.Sprintf("defaults/%d.json", major)
		text, err := defaultFiles.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(text, &opts)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		return opts, nil
	})
}

// defaultOpts returns the release line's defaults as a map of the caller's own.
func defaultOpts(v Version) (map[string]any, error) {
	parsed, ok := parsedDefaults[v.Major]
	if !ok {
		return nil, fmt.Errorf("no defaults for Salt %s: supported are 3006, 3007 and 3008", v)
	}
	opts, err := parsed()
	if err != nil {
		return nil, err
	}
	return fromJSON(opts).(map[string]any), nil
}

// HasDefault says whether a release line has an option of that name, by its defaults.
func HasDefault(option string) bool {
	for _, major := range []int{3006, 3007, 3008} {
		opts, err := defaultOpts(Version{Major: major})
		if _, has := opts[option]; err == nil && has {
			return true
		}
	}
	return false
}

// fromJSON returns a copy in which whole numbers have their integer type.
func fromJSON(v any) any {
	switch v := v.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = fromJSON(v[i])
		}
		return list
	case map[string]any:
		copied := make(map[string]any, len(v))
		for key := range v {
			copied[key] = fromJSON(v[key])
		}
		return copied
	}
	return v
}
