package eventbus

import (
	"github.com/tinylib/msgp/msgp"

	"saltclusterd/sidecar/saltwire"
)

// trimmed stands where a value was too large for an event.
const trimmed = "VALUE_TRIMMED"

// Sizes of CPython objects beyond their content, because the limits below are compared with sys.getsizeof.
const (
	pyBytesOverhead = 33
	pyStrOverhead   = 49
)

// trimEvent replaces the largest values of an event's data until it fits max_event_size, as a stock master does
// before it fires (salt/utils/dicttrim.py:trim_dict). Data that fits is returned as it is.
func trimEvent(data []byte, limit int64) ([]byte, error) {
	if limit <= 0 || int64(len(data))+pyBytesOverhead <= limit {
		return data, nil
	}
	m, _, err := msgp.ReadMapStrIntfBytes(data, nil)
	if err != nil {
		return nil, eventError(err)
	}
	for percent := int64(50); ; percent -= 10 {
		trimMap(m, limit*percent/100)
		out, err := saltwire.AppendAny(nil, m, saltwire.Disk)
		if err != nil {
			return nil, err
		}
		if int64(len(out))+pyBytesOverhead < limit || percent <= 10 {
			return out, nil
		}
	}
}

func trimMap(m map[string]any, most int64) {
	for key, value := range m {
		if inner, ok := value.(map[string]any); ok {
			trimMap(inner, most)
		} else if pySize(value) > most {
			m[key] = trimmed
		}
	}
}

// pySize is sys.getsizeof: of containers the object alone, without what it holds.
func pySize(v any) int64 {
	switch v := v.(type) {
	case string:
		return int64(len(v)) + pyStrOverhead
	case []byte:
		return int64(len(v)) + pyBytesOverhead
	case []any:
		return 56 + 8*int64(len(v))
	}
	return 32
}
