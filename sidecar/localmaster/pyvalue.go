package localmaster

import (
	"strconv"

	"saltclusterd/sidecar/saltwire"
)

// pyStr is Python's str() of a configuration value that is not a container.
func pyStr(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return saltwire.PythonFloat(v)
	case string:
		return v
	}
	return ""
}

// pyTrue is Python's bool() of a configuration value.
func pyTrue(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
