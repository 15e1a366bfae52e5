package health

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/integration/require"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// serve opens a server and returns its HTTP base URL and agent address.
func serve(t *testing.T, c *Checker, change ...func(*ServerConfig)) (url, agent string) {
	t.Helper()
	cfg := ServerConfig{Listen: "127.0.0.1:0", AgentListen: "127.0.0.1:0", Checker: c, Trusted: loopback,
		Gatherer: prometheus.NewRegistry()}
	for _, f := range change {
		f(&cfg)
	}
	s, err := NewServer(cfg)
	require.NoError(t, err)
	require.NoError(t, s.Open(t.Context()))
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	h, a := s.Addr()
	return "http://" + h.String(), a.String()
}

// settled returns an open checker whose checks have all answered.
func settled(t *testing.T, register func(*Checker)) *Checker {
	t.Helper()
	c := NewChecker(CheckerConfig{})
	register(c)
	open(t, c)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		waiting := ""
		for _, f := range c.Report(ScopeLive | ScopeServe).Findings {
			if f.Since.IsZero() {
				waiting = f.Check
			}
		}
		if waiting == "" {
			return c
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s has not answered", waiting)
		}
	}
}

func ask(t *testing.T, method, url string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	for _, h := range header {
		req.Header.Set(h, "198.51.100.7")
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func broken(c *Checker) {
	c.Register("quorum", ScopeReady|ScopeReq, always(Fail, "m2 and m3 of 3006.28 are gone"))
	c.Register("publisher", ScopePub, always(OK, ""))
	c.Register("own master", ScopeAPI, always(OK, ""))
}

func TestAnswers(t *testing.T) {
	url, _ := serve(t, settled(t, broken))
	tests := []struct {
		method, path string
		status       int
	}{
		{"GET", "/livez", 200},
		{"GET", "/readyz", 503},
		{"HEAD", "/readyz", 503},
		{"GET", "/pub", 200},
		{"OPTIONS", "/pub", 200},
		{"GET", "/req", 503},
		{"GET", "/api", 503},
		{"POST", "/req", 405},
		{"GET", "/", 404},
		{"GET", "/metrics", 200},
		{"GET", "/leader", 404},
	}
	for _, tt := range tests {
		if status, body := ask(t, tt.method, url+tt.path); status != tt.status {
			t.Errorf("%s %s = %d %q", tt.method, tt.path, status, body)
		}
	}
}

func TestStrangersHearNoDetails(t *testing.T) {
	c := settled(t, broken)
	trusted, _ := serve(t, c)
	if _, body := ask(t, "GET", trusted+"/readyz"); !strings.Contains(body, "m2 and m3") {
		t.Errorf("trusted: %q", body)
	}
	strange, _ := serve(t, c, func(s *ServerConfig) { s.Trusted = nil })
	for name, got := range map[string]func() (int, string){
		"stranger":      func() (int, string) { return ask(t, "GET", strange+"/readyz") },
		"through proxy": func() (int, string) { return ask(t, "GET", trusted+"/readyz", "X-Forwarded-For") },
	} {
		if status, body := got(); status != 503 || body != `{"status":"failing","failing":["quorum"]}`+"\n" {
			t.Errorf("%s: %d %q", name, status, body)
		}
	}
	if status, _ := ask(t, "GET", strange+"/metrics"); status != 403 {
		t.Errorf("metrics for a stranger: %d", status)
	}
	off, _ := serve(t, c, func(s *ServerConfig) { s.Gatherer = nil })
	if status, _ := ask(t, "GET", off+"/metrics"); status != 404 {
		t.Errorf("metrics switched off: %d", status)
	}
}

// Whatever a stranger asks for, by whatever method: an answer is a few words that he may hear, and nothing in it tells
// whose it is.
func TestAnswersAreAFewWords(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "build",
		ConstLabels: prometheus.Labels{"node": "m2", "version": "3006.28"}}, func() float64 { return 1 }))
	url, agent := serve(t, settled(t, broken), func(s *ServerConfig) {
		s.Trusted, s.Gatherer, s.Leads = nil, reg, func() bool { return true }
		s.Page = http.HandlerFunc(func(w http.ResponseWriter,
			_ *http.Request) {
			_, _ = io.WriteString(w, "this is m2, 3006.28")
		})
	})
	words := regexp.MustCompile(`[a-z]+`)
	heard := map[string]bool{}
	hear := func(from, text string) {
		for _, secret := range []string{"m2", "3006", "gone"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s tells %q", from, text)
			}
		}
		for _, w := range words.FindAllString(text, -1) {
			heard[w] = true
		}
	}
	for _, path := range []string{"/", "/livez", "/readyz", "/pub", "/req", "/leader", "/metrics", "/status", "/status/",
		"/status/page.js", "/status/../metrics", "/debug/pprof/", "/x"} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "TRACE", "BREW"} {
			for _, query := range []string{"", "?format=text", "?format=json&verbose=1"} {
				req, err := http.NewRequestWithContext(t.Context(), method, url+path+query, nil)
				require.NoError(t, err)
				resp, err := http.DefaultTransport.RoundTrip(req)
				require.NoError(t, err)
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				require.NoError(t, err)
				hear(method+" "+path+query, string(body))
				for name, values := range resp.Header {
					switch name {
					case "Date", "Content-Length", "Content-Type", "Cache-Control", "Allow", "X-Content-Type-Options", "Location":
						hear(method+" "+path+query+": "+name, strings.ReplaceAll(strings.Join(values, " "), path, ""))
					default:
						t.Errorf("%s %s: header %s: %q", method, path, name, values)
					}
				}
			}
		}
	}
	conn, err := net.Dial("tcp", agent)
	require.NoError(t, err)
	defer conn.Close()
	line, _ := io.ReadAll(conn)
	hear("agent-check", string(line))
	if len(heard) > 60 {
		t.Errorf("%d words are heard: %v", len(heard), heard)
	}
}

// The page is for those who hear reasons, and nobody else.
func TestStrangersSeeNoPage(t *testing.T) {
	c := settled(t, broken)
	page := func(s *ServerConfig) {
		s.Page = http.HandlerFunc(func(w http.ResponseWriter,
			r *http.Request) {
			_, _ = io.WriteString(w, "page "+r.URL.Path)
		})
	}
	trusted, _ := serve(t, c, page)
	for _, path := range []string{"/status", "/status/page.js"} {
		if status, body := ask(t, "GET", trusted+path); status != 200 || body != "page "+path {
			t.Errorf("%s: %d %q", path, status, body)
		}
		if status, body := ask(t, "GET", trusted+path, "X-Forwarded-For"); status != 403 || strings.Contains(body, "page") {
			t.Errorf("%s through a proxy: %d %q", path, status, body)
		}
		if status, _ := ask(t, "POST", trusted+path); status != 405 {
			t.Errorf("POST %s: %d", path, status)
		}
	}
	strange, _ := serve(t, c, page, func(s *ServerConfig) { s.Trusted = nil })
	if status, body := ask(t, "GET", strange+"/status"); status != 403 || strings.Contains(body, "page") {
		t.Errorf("a stranger: %d %q", status, body)
	}
	off, _ := serve(t, c)
	if status, _ := ask(t, "GET", off+"/status"); status != 404 {
		t.Errorf("switched off: %d", status)
	}
}

func TestLeader(t *testing.T) {
	leads := false
	url, _ := serve(t, settled(t, broken), func(s *ServerConfig) { s.Leads = func() bool { return leads } })
	for _, want := range []int{503, 200} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
			if status, body := ask(t, method, url+"/leader"); status != want {
				t.Errorf("%s is %d %q, want %d", method, status, body, want)
			}
		}
		leads = true
	}
	if status, _ := ask(t, "DELETE", url+"/leader"); status != 405 {
		t.Errorf("DELETE is %d", status)
	}
}

func TestTextForPeople(t *testing.T) {
	url, _ := serve(t, settled(t, broken))
	if _, body := ask(t, "GET", url+"/readyz?format=text"); !strings.Contains(body, "fail quorum: m2 and m3") {
		t.Errorf("trusted: %q", body)
	}
	if _, body := ask(t, "GET", url+"/readyz?format=text", "Via"); body != "failing: quorum\n" {
		t.Errorf("stranger: %q", body)
	}
}

func TestAgentCheck(t *testing.T) {
	c := settled(t, func(c *Checker) { c.Register("edges", ScopePub|ScopeReq, always(Fail, "")) })
	_, agent := serve(t, c)
	tests := []struct {
		name, send, want string
		drain            bool
	}{
		{"down", "", "down #edges\n", false},
		{"agent-send", "hello\n", "down #edges\n", false},
		{"drain", "", "drain\n", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c.SetDraining(tt.drain)
			conn, err := net.Dial("tcp", agent)
			require.NoError(t, err)
			defer conn.Close()
			io.WriteString(conn, tt.send)
			conn.(*net.TCPConn).CloseWrite()
			conn.SetDeadline(time.Now().Add(10 * time.Second))
			if got, err := io.ReadAll(conn); err != nil || string(got) != tt.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestDrainingIsNotBroken(t *testing.T) {
	good := settled(t, func(c *Checker) { c.Register("quorum", ScopeServe, always(OK, "")) })
	bad := settled(t, broken)
	alone := settled(t, func(c *Checker) { c.Register("own master", ScopeAPI, always(Fail, "it is down")) })
	for _, tt := range []struct {
		name     string
		checker  *Checker
		drain    bool
		pub, req int
		api      int
		rdy, liv int
	}{
		{"serving", good, false, 200, 200, 200, 200, 200},
		{"draining", good, true, 404, 404, 404, 503, 200},
		{"draining and no quorum", bad, true, 404, 503, 503, 503, 200},
		{"the own master is down", alone, false, 200, 200, 503, 200, 200},
		{"draining, the own master is down", alone, true, 404, 404, 503, 503, 200},
	} {
		tt.checker.SetDraining(tt.drain)
		url, _ := serve(t, tt.checker)
		for path, want := range map[string]int{"/pub": tt.pub, "/req": tt.req, "/api": tt.api, "/readyz": tt.rdy, "/livez": tt.liv} {
			if status, body := ask(t, "GET", url+path); status != want {
				t.Errorf("%s: %s is %d (%s), want %d", tt.name, path, status, body, want)
			}
		}
	}
}

func TestConnectionsAreBoundedPerAddress(t *testing.T) {
	reg := prometheus.NewRegistry()
	url, _ := serve(t, settled(t, broken), func(s *ServerConfig) {
		s.MaxConnectionsPerAddress = 2
		s.Registerer = reg
	})
	addr := strings.TrimPrefix(url, "http://")
	var held []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer c.Close()
		held = append(held, c)
	}
	refused, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer refused.Close()
	refused.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := refused.Read(make([]byte, 1)); err == nil || errors.Is(err, net.ErrClosed) {
		t.Errorf("the third connection: %v", err)
	}
	// Another address is not disturbed, and a closed connection makes room.
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
	other, err := d.Dial("tcp", addr)
	require.NoError(t, err)
	defer other.Close()
	status(t, other)
	held[0].Close()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(url + "/livez")
		if err == nil {
			resp.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the place of a closed connection is not given back")
		}
	}
}

func status(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(c, "GET /livez HTTP/1.0\r\n\r\n")
	if got, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(got), "HTTP/1.0 200") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestListenErrorsNameTheOption(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for option, cfg := range map[string]ServerConfig{
		"health_listen":      {Listen: taken.Addr().String()},
		"agent_check_listen": {Listen: "127.0.0.1:0", AgentListen: taken.Addr().String()},
	} {
		cfg.Checker = NewChecker(CheckerConfig{})
		s, err := NewServer(cfg)
		require.NoError(t, err)
		if err := s.Open(t.Context()); err == nil || !strings.Contains(err.Error(), option) {
			t.Errorf("%s: %v", option, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close of what never opened: %v", err)
		}
	}
	if _, err := NewServer(ServerConfig{}); err == nil {
		t.Error("a server without a checker")
	}
}
