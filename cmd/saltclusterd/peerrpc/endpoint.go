package peerrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
)

// None is the type of a question or an answer that carries nothing.
type None struct{}

// Endpoint describes a call with a question Q and an answer A. With the method GET the question is encoded in the URL's
// query by Encode and Decode, which may be nil when Q is None. With POST it is JSON in the body.
type Endpoint[Q, A any] struct {
	Method      string
	Path        string
	MaxQuestion int64 // bytes; POST only
	MaxAnswer   int64 // bytes
	Encode      func(Q) url.Values
	Decode      func(url.Values) (Q, error)
}

// Error is an answer other than 200. Any other error of a handler is answered with 500.
type Error struct {
	Status int
	Text   string
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Unavailable returns the error of a part that cannot answer now.
func Unavailable(text string) error { return &Error{http.StatusServiceUnavailable, text} }

// Call asks a member.
func (e Endpoint[Q, A]) Call(ctx context.Context, c Client, to node.ID, question Q) (answer A, err error) {
	path, body := e.Path, []byte(nil)
	switch {
	case e.Method == http.MethodPost:
		if body, err = json.Marshal(question); err != nil {
			return answer, fmt.Errorf("encode question for %s of %s: %w", e.Path, to, err)
		}
	case e.Encode != nil:
		if query := e.Encode(question).Encode(); query != "" {
			path += "?" + query
		}
	}
	raw, err := c.Do(ctx, e.Method, to, path, body, e.MaxAnswer)
	if err != nil {
		return answer, err
	}
	if _, none := any(answer).(None); none && len(raw) == 0 { // members of before send nothing then
		return answer, nil
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return answer, fmt.Errorf("decode answer of %s to %s: %w", to, e.Path, err)
	}
	return answer, nil
}

// Pattern is what a Mux routes to the endpoint.
func (e Endpoint[Q, A]) Pattern() string { return e.Method + " " + e.Path }

// Handler answers calls with serve.
func (e Endpoint[Q, A]) Handler(serve func(ctx context.Context, from node.ID, question Q) (A, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, err := e.read(w, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		from, _ := peer.FromContext(r.Context())
		answer, err := serve(r.Context(), from, question)
		if err != nil {
			status := http.StatusInternalServerError
			if e, ok := errors.AsType[*Error](err); ok {
				status = e.Status
			}
			http.Error(w, err.Error(), status)
			return
		}
		body, err := json.Marshal(answer)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // a peer that went away needs no error
	})
}

// read decodes a question. One that carries nothing needs no body.
func (e Endpoint[Q, A]) read(w http.ResponseWriter, r *http.Request) (question Q, err error) {
	if e.Method != http.MethodPost {
		if e.Decode == nil {
			return question, nil
		}
		return e.Decode(r.URL.Query())
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, e.MaxQuestion))
	if err != nil {
		return question, fmt.Errorf("read question: %w", err)
	}
	if _, none := any(question).(None); none && len(body) == 0 {
		return question, nil
	}
	if err := json.Unmarshal(body, &question); err != nil {
		return question, errors.New("malformed question")
	}
	return question, nil
}
