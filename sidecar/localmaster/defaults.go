package localmaster

import (
	"embed"
	"encoding/json"
	"fmt"
)

// defaultFiles hold DEFAULT_MASTER_OPTS of each release line (salt/config/__init__.py); defaults/dump.py wrote them.
//
//go:embed defaults/*.json
var defaultFiles embed.FS

// defaultOpts returns the release line's defaults as a map of the caller's own.
func defaultOpts(v Version) (map[string]any, error) {
	name := fmt.Sprintf("defaults/%d.json", v.Major)
	text, err := defaultFiles.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("no defaults for Salt %s: supported are 3006, 3007 and 3008", v)
	}
	var opts map[string]any
	if err := json.Unmarshal(text, &opts); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	for key, value := range opts {
		opts[key] = fromJSON(value)
	}
	return opts, nil
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

// fromJSON gives whole numbers their integer type back.
func fromJSON(v any) any {
	switch v := v.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = fromJSON(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = fromJSON(v[key])
		}
	}
	return v
}
