package peerrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
)

type memberKey struct{}

func memberOf(ctx context.Context) (node.ID, bool) {
	id, ok := ctx.Value(memberKey{}).(node.ID)
	return id, ok
}

func request(ctx context.Context, from node.ID, method, path string, body io.Reader) *http.Request {
	return httptest.NewRequestWithContext(context.WithValue(ctx, memberKey{}, from), method, path, body)
}

// A member whose requests do not end takes its own places only.
func TestMux_PlacesOfOneMember(t *testing.T) {
	const places = 3
	began, end := make(chan string, 100), make(chan struct{})
	m := NewMux(memberOf)
	m.Handle("/", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began <- r.URL.Path
		<-end
	}))
	m.Limit("/jobs", places)
	m.Limit("/parts/", places)
	m.Unlimit("/relay")
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan struct{}, 100)
	call := func(ctx context.Context, from node.ID, path string) {
		go func() {
			m.ServeHTTP(httptest.NewRecorder(), request(ctx, from, http.MethodPost, path, nil))
			ended <- struct{}{}
		}()
	}
	for _, path := range []string{"/jobs", "/parts/a"} {
		for range 20 {
			call(ctx, "thief", path)
		}
		for range places {
			<-began
		}
	}
	for _, other := range []struct {
		from node.ID
		path string
	}{{"m2", "/jobs"}, {"thief", "/stats"}, {"thief", "/relay"}} {
		call(t.Context(), other.from, other.path)
		if got := <-began; got != other.path {
			t.Fatalf("%s is worked on, not %s", got, other.path)
		}
	}
	call(ctx, "thief", "/parts/b") // the same places as /parts/a
	giveUp()                       // callers that wait have gone
	for range 2*(20-places) + 1 {
		<-ended
	}
	select {
	case path := <-began:
		t.Errorf("one more request is worked on: %s", path)
	default:
	}
	close(end)
	for range 2*places + 3 {
		<-ended
	}
}

// The number of requests of one member that wait is limited; those of another one wait beside them.
func TestMux_WaitingOfOneMember(t *testing.T) {
	const places = 3
	m := NewMux(memberOf)
	end := make(chan struct{})
	m.Handle("/", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	m.Limit("/jobs", places)
	waiting := func(of node.ID) int {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.waiting[of]
	}
	answers := make(chan int, 3*maxWaiting)
	call := func(from node.ID) {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, request(t.Context(), from, http.MethodPost, "/jobs", nil))
		answers <- w.Code
	}
	const beyond = 10
	for range places + maxWaiting + beyond {
		go call("thief")
	}
	for range beyond { // no other request is answered yet
		check.Equal(t, <-answers, http.StatusServiceUnavailable, "one too many is answered")
	}
	for range places + 1 {
		go call("m2")
	}
	patience.WaitFor(t, "one request of another member waits", func() bool { return waiting("m2") == 1 })
	close(end)
	for range 2*places + maxWaiting + 1 {
		check.Equal(t, <-answers, http.StatusOK, "one that waited is answered")
	}
	if n := waiting("thief") + waiting("m2"); n != 0 {
		t.Errorf("%d wait at the end", n)
	}
}

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

var (
	addPost = Endpoint[sum, int]{Method: http.MethodPost, Path: "/add", MaxQuestion: 100, MaxAnswer: 100}
	echoGet = Endpoint[string, string]{
		Method: http.MethodGet, Path: "/echo", MaxAnswer: 100,
		Encode: func(q string) url.Values { return url.Values{"q": {q}} },
		Decode: func(v url.Values) (string, error) {
			if v.Get("q") == "" {
				return "", errors.New("nothing to echo")
			}
			return v.Get("q"), nil
		},
	}
	ping = Endpoint[None, None]{Method: http.MethodGet, Path: "/ping", MaxAnswer: 100}
)

// handlerTransport is a network to one handler.
type handlerTransport struct{ h http.Handler }

func (t handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	t.h.ServeHTTP(w, r)
	return w.Result(), nil
}

func TestEndpoint(t *testing.T) {
	m := NewMux(memberOf)
	m.Handle(addPost.Pattern(), addPost.Handler(func(_ context.Context, _ node.ID, q sum) (int, error) {
		if q.A < 0 {
			return 0, &Error{http.StatusConflict, "negative"}
		}
		return q.A + q.B, nil
	}))
	m.Handle(echoGet.Pattern(), echoGet.Handler(func(_ context.Context, _ node.ID, q string) (string, error) {
		if q == "boom" {
			return "", errors.New("broken")
		}
		return q, nil
	}))
	m.Handle(ping.Pattern(), ping.Handler(func(context.Context, node.ID,
		None) (None, error) {
		return None{}, Unavailable("starting")
	}))
	c := Client{HTTP: &http.Client{Transport: handlerTransport{m}}}
	ctx := t.Context()

	if got, err := addPost.Call(ctx, c, "m2", sum{1, 2}); got != 3 || err != nil {
		t.Errorf("add: %d, %v", got, err)
	}
	if got, err := echoGet.Call(ctx, c, "m2", "a&b=ü"); got != "a&b=ü" || err != nil {
		t.Errorf("echo: %q, %v", got, err)
	}
	for want, err := range map[string]error{
		"409 Conflict: negative":            second(addPost.Call(ctx, c, "m2", sum{A: -1})),
		"400 Bad Request: nothing to echo":  second(echoGet.Call(ctx, c, "m2", "")),
		"500 Internal Server Error: broken": second(echoGet.Call(ctx, c, "m2", "boom")),
		"503 Service Unavailable: starting": second(ping.Call(ctx, c, "m2", None{})),
		"unexpected end of JSON input":      second(echoGet.Call(ctx, c, "m2", strings.Repeat("x", 200))), // cut off
	} {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "m2") {
			t.Errorf("%v, want %q", err, want)
		}
	}

	for body, want := range map[string]int{
		"": http.StatusBadRequest, "{}": http.StatusOK, `{"a":1,"c":2}`: http.StatusOK, "[]": http.StatusBadRequest,
		"x": http.StatusBadRequest,
		`{"a":` + strings.Repeat(" ", 200) + "1}": http.StatusBadRequest,
	} {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, request(ctx, "m1", http.MethodPost, "/add", strings.NewReader(body)))
		check.Equal(t, w.Code, want, body)
	}
}

func second[T any](_ T, err error) error { return err }

// FuzzEndpoint: whatever a member sends, it is answered.
func FuzzEndpoint(f *testing.F) {
	f.Add(`{"a":1,"b":2}`)
	f.Add("")
	f.Add("\x00")
	h := addPost.Handler(func(_ context.Context, _ node.ID, q sum) (int, error) { return q.A + q.B, nil })
	f.Fuzz(func(t *testing.T, body string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request(t.Context(), "m1", http.MethodPost, "/add", strings.NewReader(body)))
		if len(body) > int(addPost.MaxQuestion) && w.Code == http.StatusOK {
			t.Fatal(fmt.Sprint(len(body), " bytes are accepted"))
		}
	})
}
