package edge

import (
	"bytes"
	"testing"
)

// FuzzParseAnswer is what an old process tells the new one of a request that it still answers.
func FuzzParseAnswer(f *testing.F) {
	f.Add(Answer{Conn: 7, Request: 3, Kind: Unserved, Body: []byte("body")}.Append())
	f.Add(Answer{}.Append())
	f.Fuzz(func(t *testing.T, record []byte) {
		a, err := ParseAnswer(record)
		if err != nil {
			return
		}
		again, err := ParseAnswer(a.Append())
		if err != nil || again.Conn != a.Conn || again.Request != a.Request || again.Kind != a.Kind ||
			!bytes.Equal(again.Body, a.Body) {
			t.Fatalf("%+v became %+v, %v", a, again, err)
		}
	})
}
