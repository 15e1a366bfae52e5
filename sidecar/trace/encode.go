package trace

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// What follows is OTLP's ExportTraceServiceRequest in its JSON form (opentelemetry-proto, docs/specification.md): ids
// in hexadecimal digits, numbers of 64 bits as text.
type (
	export struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope      `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	otlpSpan struct {
		TraceID    string     `json:"traceId"`
		SpanID     string     `json:"spanId"`
		ParentID   string     `json:"parentSpanId,omitempty"`
		Name       string     `json:"name"`
		Kind       int        `json:"kind"`
		Start      string     `json:"startTimeUnixNano"`
		End        string     `json:"endTimeUnixNano"`
		Attributes []keyValue `json:"attributes,omitempty"`
		Status     *status    `json:"status,omitempty"`
	}
	status struct {
		Code int `json:"code"`
	}
	keyValue struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String *string `json:"stringValue,omitempty"`
		Int    string  `json:"intValue,omitempty"`
	}
)

const statusError = 2

func (c Config) encodeBatch(batch []*Request) []byte {
	s := scopeSpans{Scope: scope{"saltclusterd", c.Version}}
	for _, r := range batch {
		whole, parent := r.whole, ""
		if r.parent.span != [8]byte{} {
			parent = hex.EncodeToString(r.parent.span[:])
		}
		s.Spans = append(s.Spans, whole.toOTLP(r.parent.trace, parent))
		for _, step := range r.steps {
			s.Spans = append(s.Spans, step.toOTLP(r.parent.trace, hex.EncodeToString(whole.id[:])))
		}
	}
	from := resource{textAttributes("service.name", "saltclusterd", "service.version", c.Version, "service.namespace", c.Cluster,
		"service.instance.id", c.Node)}
	raw, err := json.Marshal(export{[]resourceSpans{{from, []scopeSpans{s}}}})
	if err != nil {
		panic(err) // of texts and numbers only
	}
	return raw
}

func (s *span) toOTLP(trace [16]byte, parent string) otlpSpan {
	o := otlpSpan{
		TraceID: hex.EncodeToString(trace[:]), SpanID: hex.EncodeToString(s.id[:]), ParentID: parent, Name: s.name,
		Kind:  s.kind,
		Start: formatNanos(s.start), End: formatNanos(s.end),
	}
	for _, a := range s.attrs {
		if a.text != "" {
			o.Attributes = append(o.Attributes, textAttributes(a.name, a.text)...)
		} else {
			o.Attributes = append(o.Attributes, keyValue{a.name, value{Int: strconv.FormatInt(a.num, 10)}})
		}
	}
	if s.failed {
		o.Status = &status{statusError}
	}
	return o
}

func formatNanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func textAttributes(pairs ...string) (all []keyValue) {
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, keyValue{pairs[i], value{String: &pairs[i+1]}})
	}
	return all
}
