package statuspage_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/statuspage"
	"saltclusterd/sidecar/statuspage/statuspagetest"
)

func newPage(s statuspage.Source) *statuspage.Page {
	return statuspage.New(statuspage.Config{
		Source: s, Series: statuspagetest.Series(), Hosts: []string{"m1"},
		Now: func() time.Time { return statuspagetest.Now },
	})
}

func get(t *testing.T, h http.Handler, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:4580"+path, nil)
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The whole first view stands in the page, without a script.
func TestPageSaysWhatThereIs(t *testing.T) {
	w := get(t, newPage(&statuspagetest.Source{}), "/status")
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	page := w.Body.String()
	for _, want := range []string{
		"production", "as seen by m1", "saltclusterd 0.9.0, Salt 3008.3, up 2 d 2 h", "2 warnings",
		"the local salt-master does not serve; the others&#39; do",
		"start the salt-master: nothing answers at 127.0.0.1:4506",
		"m3 is drained", "leader", "50.2 %", "draining", "1418", "3 of 3 voters, 2 needed", "42 waiting, ok",
		"state.apply", "waiting for 252", "1 missing", "G@role:web and not web17*", `value="388"`,
		"<strong>3012</strong> present", "<strong>2</strong> uncertain", "db7.example.com", "38 min ago", "not yet", "11 min",
		"revision 318, 976 files, by m1 4 min ago",
		"fetching 3 of 12 files, 1 conflict", "2026-03-04 10:30:00 UTC", "publications", "/s at most",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "web10.example.com") {
		t.Error("a quick minion is called slow")
	}
	if strings.Contains(page, "6f1c0b9e") {
		t.Error("the cluster's uuid is nobody's business here")
	}
}

// Nothing is loaded from elsewhere, and nothing inline that the policy would have to allow.
func TestPolicy(t *testing.T) {
	p := newPage(&statuspagetest.Source{})
	for _, path := range []string{"/status", "/status/page.css", "/status/page.js"} {
		w := get(t, p, path)
		csp := w.Header().Get("Content-Security-Policy")
		if w.Code != 200 || !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") ||
			w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d, policy %q", path, w.Code, csp)
		}
	}
	page := get(t, p, "/status").Body.String()
	for _, bad := range []string{` style="`, "<style", "javascript:", "http://", "https://", "//cdn"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	check.Equal(t, regexp.MustCompile(` on[a-z]+="|<script>`).FindString(page), "", "the page has")
	for _, path := range []string{"/status/page.html", "/status/assets/page.html", "/status/x"} {
		check.Equal(t, get(t, p, path).Code, http.StatusNotFound, path)
	}
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/status", nil)
	w := httptest.NewRecorder()
	if p.ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// A name that a stranger points at loopback is not answered.
func TestHosts(t *testing.T) {
	p := newPage(&statuspagetest.Source{})
	for host, want := range map[string]int{
		"127.0.0.1:4580": 200, "[::1]:4580": 200, "localhost:14580": 200, "LOCALHOST.": 200, "m1": 200, "M1:80": 200,
		"10.0.0.11":    200,
		"evil.example": 421, "localhost.evil.example": 421, "": 421, "m1.evil.example:4580": 421,
		"127.0.0.1.evil.example": 421,
	} {
		check.Equal(t, get(t, p, "/status", func(r *http.Request) { r.Host = host }).Code, want, host)
	}
	cross := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
	check.Equal(t, get(t, p, "/status", cross).Code, http.StatusForbidden, "a foreign page's script")
	if w := get(t, p, "/status", cross, func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Mode", "navigate")
	}); w.Code != 200 {
		t.Errorf("a link on a foreign page: %d", w.Code)
	}
}

// lonely is a node without a cluster: it has nothing to say but its status.
type lonely struct{ statuspagetest.Source }

var errNothing = errors.New("nothing")

func (l *lonely) Status(context.Context) (adminapi.Status, error) {
	return adminapi.Status{Node: adminapi.Node{ID: "m9", Version: "1"}}, nil
}

func (l *lonely) RingInfo(context.Context, adminapi.RingQuery) (adminapi.RingInfo, error) {
	return adminapi.RingInfo{}, errNothing
}

func (l *lonely) RootsStatus(context.Context) (adminapi.RootsStatus, error) {
	return adminapi.RootsStatus{}, errNothing
}

func (l *lonely) ListJobs(context.Context, int) (adminapi.JobList, error) {
	return adminapi.JobList{}, errNothing
}

func (l *lonely) Presence(context.Context) (adminapi.Presence, error) {
	return adminapi.Presence{}, errNothing
}

func (l *lonely) Protocols(context.Context) (adminapi.Protocols, error) {
	return adminapi.Protocols{}, errNothing
}

func TestPageOfALonelyNode(t *testing.T) {
	w := get(t, statuspage.New(statuspage.Config{Source: &lonely{}}), "/status")
	for _, want := range []string{"this node belongs to no cluster yet", "no cluster", "as seen by m9",
		"this node serves no minions", "no metrics"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d, without %q", w.Code, want)
		}
	}
}

// hostile has names that would be markup.
type hostile struct{ statuspagetest.Source }

func (h *hostile) ListJobs(context.Context, int) (adminapi.JobList, error) {
	return adminapi.JobList{Jobs: []adminapi.JobRow{{JID: "1", Function: "<script>alert(1)</script>",
		Target: `"><img src=x>`, Minions: 1}}}, nil
}

func TestNamesAreNoMarkup(t *testing.T) {
	page := get(t, newPage(&hostile{}), "/status").Body.String()
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") ||
		!strings.Contains(page, "&lt;script&gt;alert") {
		t.Error("names of jobs are markup")
	}
}

// counting counts how often it is asked.
type counting struct {
	statuspagetest.Source
	mu             sync.Mutex
	status, listed int
}

func (c *counting) Status(ctx context.Context) (adminapi.Status, error) {
	c.mu.Lock()
	c.status++
	c.mu.Unlock()
	return c.Source.Status(ctx)
}

func (c *counting) Protocols(ctx context.Context) (adminapi.Protocols, error) {
	c.mu.Lock()
	c.listed++
	c.mu.Unlock()
	return c.Source.Protocols(ctx)
}

// However many look, the cluster is asked once in a while.
func TestManyLook(t *testing.T) {
	s := &counting{}
	now := statuspagetest.Now
	var mu sync.Mutex
	p := statuspage.New(statuspage.Config{Source: s, Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	look := func() {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { get(t, p, "/status") })
		}
		wg.Wait()
	}
	for _, want := range []struct {
		after          time.Duration
		status, listed int
	}{{0, 1, 1}, {time.Second, 1, 1}, {2 * time.Second, 2, 1}, {10 * time.Second, 3, 2}} {
		mu.Lock()
		now = now.Add(want.after)
		mu.Unlock()
		if look(); s.status != want.status || s.listed != want.listed {
			t.Errorf("%s later: asked %d and %d times, not %d and %d", want.after, s.status, s.listed, want.status, want.listed)
		}
	}
}
