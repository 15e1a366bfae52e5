package peerrpc

import (
	"errors"
	"net/http"
	"testing"
)

func TestIsNotFound(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		want   bool
	}{
		{"no such call", http.NotFound, true},
		{"another status with that text", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "404 Not Found", http.StatusServiceUnavailable)
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Client{&http.Client{Transport: handlerTransport{test.answer}}}
			_, err := c.Do(t.Context(), http.MethodGet, "m1", "/v1/x", nil, 100)
			if err == nil || IsNotFound(err) != test.want {
				t.Errorf("IsNotFound of %v is %t", err, !test.want)
			}
		})
	}
	if IsNotFound(errors.New("404 Not Found")) || IsNotFound(nil) {
		t.Error("IsNotFound is true without an answer")
	}
}
