package config

import (
	"fmt"
	"maps"
	"net/netip"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// Show lists every option with its value and source, in table order. Secrets
// are redacted.
func (c *Config) Show() adminapi.Config {
	out := adminapi.Config{Files: c.files}
	for _, o := range Options() {
		source := "default"
		if p, set := c.places[o.Name]; set && p.file != "" {
			source = p.String()
		}
		value := plainValue(o.currentValue(c))
		if text, resolved := c.written[o.Name]; resolved {
			value = text // as in the files: config diff compares
		}
		out.Options = append(out.Options, adminapi.ConfigOption{Name: o.Name, Value: value, Source: source})
	}
	return out
}

func (p place) String() string {
	if p.line == 0 {
		return p.file
	}
	return fmt.Sprintf("%s:%d", p.file, p.line)
}

// plainValue turns a value into what JSON and YAML show as an operator would write
// it.
func plainValue(v any) any {
	switch v := v.(type) {
	case Secret:
		return v.redactedText()
	case Size:
		return v.String()
	case time.Duration:
		return formatDuration(v)
	case []string:
		return append([]string{}, v...)
	case []netip.Prefix:
		return formatPrefixes(v)
	case map[string][]netip.Prefix:
		out := make(map[string][]string, len(v))
		for name, networks := range v {
			out[name] = formatPrefixes(networks)
		}
		return out
	case map[string]string:
		out := make(map[string]string, len(v))
		maps.Copy(out, v)
		return out
	case []TagRule: // a list, because the order counts
		out := make([]map[string]string, 0, len(v))
		for _, r := range v {
			out = append(out, map[string]string{r.Tag: r.Policy})
		}
		return out
	default:
		return v
	}
}

func formatPrefixes(in []netip.Prefix) []string {
	out := make([]string, len(in))
	for i, p := range in {
		out[i] = p.String()
	}
	return out
}
