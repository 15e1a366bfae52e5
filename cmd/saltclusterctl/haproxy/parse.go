package haproxy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxFile bounds a configuration, in bytes.
const MaxFile = 4 << 20

// Config is what matters of a configuration.
type Config struct {
	MaxConn     int // of global; 0: not set
	UlimitN     int // ulimit-n of global; 0: not set
	FDHardLimit int // fd-hard-limit of global; 0: not set
	Proxies     []Proxy
}

// Proxy is a listen, frontend or backend section with what it has from its defaults.
type Proxy struct {
	Kind, Name string
	Line       int
	Mode       string // empty: never said, which is tcp
	Balance    string
	Binds      []Bind
	Servers    []ServerLine
	Timeouts   map[string]Timeout
	Backends   []string // that a frontend uses
	HTTPCheck  string   // path of option httpchk, or http-check send
	Checked    bool     // it has option httpchk
	On404      bool     // http-check disable-on-404
	MaxConn    int
	StickTable bool
	Source     bool // of connections to servers is said

	preset ServerLine // what default-server says so far
}

// Bind is a listening address.
type Bind struct {
	Line, Port int
	TLS        bool
}

// Timeout is how long, and where that is said.
type Timeout struct {
	Line int
	Time time.Duration
}

// ServerLine is a server of a proxy.
type ServerLine struct {
	Line            int
	Name, Host      string
	Port, CheckPort int
	Check, Agent    bool
	Weight          int // 0: not set
	Proxy           bool
	Shutdown        bool // on-marked-down shutdown-sessions
	TLS             bool
	Source          bool // of connections to it is said
}

// Parse reads a configuration.
func Parse(text string) (*Config, error) {
	if len(text) > MaxFile {
		return nil, fmt.Errorf("the file is larger than %d bytes", MaxFile)
	}
	r := &reader{defaults: map[string]Proxy{}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if words := splitWords(line); len(words) > 0 {
			r.readLine(number, words)
		}
	}
	r.endSection()
	return &r.cfg, nil
}

type reader struct {
	cfg      Config
	global   bool
	now      *Proxy // the section being read; nil: none that matters
	last     Proxy  // the newest defaults
	defaults map[string]Proxy
}

func (r *reader) readLine(number int, words []string) {
	switch words[0] {
	case "global", "defaults", "listen", "frontend", "backend":
		r.beginSection(number, words)
		return
	case "peers", "resolvers", "userlist", "mailers", "program", "cache", "ring", "http-errors", "fcgi-app", "crt-store", "log-forward", "traces":
		r.endSection()
		return
	}
	switch {
	case r.global:
		r.cfg.setKeyword(words)
	case r.now != nil:
		r.now.setKeyword(number, words)
	}
}

// setKeyword of global.
func (c *Config) setKeyword(words []string) {
	switch n := parseNumber(wordAt(words, 1)); words[0] {
	case "maxconn":
		c.MaxConn = n
	case "ulimit-n":
		c.UlimitN = n
	case "fd-hard-limit":
		c.FDHardLimit = n
	}
}

func (r *reader) beginSection(number int, words []string) {
	r.endSection()
	if words[0] == "global" {
		r.global = true
		return
	}
	p := Proxy{}
	if words[0] != "defaults" {
		p = r.last
	}
	if i := slices.Index(words, "from"); i > 0 {
		p = r.defaults[wordAt(words, i+1)]
	}
	p.Kind, p.Name, p.Line = words[0], wordAt(words, 1), number
	timeouts := make(map[string]Timeout, len(p.Timeouts))
	for name, t := range p.Timeouts {
		timeouts[name] = t
	}
	p.Timeouts, p.Binds, p.Servers, p.Backends = timeouts, nil, nil, nil
	r.now = &p
}

func (r *reader) endSection() {
	r.global = false
	if r.now == nil {
		return
	}
	if r.now.Kind == "defaults" {
		r.last = *r.now
		r.defaults[r.now.Name] = *r.now
	} else {
		r.cfg.Proxies = append(r.cfg.Proxies, *r.now)
	}
	r.now = nil
}

func (p *Proxy) setKeyword(number int, words []string) {
	switch words[0] {
	case "mode":
		p.Mode = wordAt(words, 1)
	case "balance":
		p.Balance = wordAt(words, 1)
	case "maxconn":
		p.MaxConn = parseNumber(wordAt(words, 1))
	case "bind":
		for _, a := range strings.Split(wordAt(words, 1), ",") {
			_, port := splitAddress(a)
			p.Binds = append(p.Binds, Bind{Line: number, Port: port, TLS: slices.Contains(words, "ssl")})
		}
	case "timeout":
		if d, ok := parseTime(wordAt(words, 2)); ok {
			p.Timeouts[wordAt(words, 1)] = Timeout{number, d}
		}
	case "option":
		if wordAt(words, 1) == "httpchk" {
			p.Checked, p.HTTPCheck = true, probePath(words[2:])
		}
	case "http-check":
		p.setCheck(words)
	case "default_backend", "use_backend":
		p.Backends = append(p.Backends, wordAt(words, 1))
	case "stick-table":
		p.StickTable = true
	case "source":
		p.Source = true
	case "default-server":
		p.preset = p.preset.withKeywords(words[1:])
	case "server":
		p.addServer(number, words)
	}
}

func (p *Proxy) setCheck(words []string) {
	switch wordAt(words, 1) {
	case "disable-on-404":
		p.On404 = true
	case "send":
		if i := slices.Index(words, "uri"); i > 0 {
			p.HTTPCheck = wordAt(words, i+1)
		}
	}
}

func (p *Proxy) addServer(number int, words []string) {
	s := p.preset
	s.Line, s.Name = number, wordAt(words, 1)
	s.Host, s.Port = splitAddress(wordAt(words, 2))
	if len(words) > 3 {
		s = s.withKeywords(words[3:])
	}
	p.Servers = append(p.Servers, s)
}

// withKeywords adds the keywords of a server line.
func (s ServerLine) withKeywords(words []string) ServerLine {
	for i, w := range words {
		next := wordAt(words, i+1)
		switch w {
		case "check":
			s.Check = true
		case "no-check":
			s.Check = false
		case "port":
			s.CheckPort = parseNumber(next)
		case "agent-check":
			s.Agent = true
		case "weight":
			s.Weight = parseNumber(next)
		case "send-proxy", "send-proxy-v2", "send-proxy-v2-ssl", "send-proxy-v2-ssl-cn":
			s.Proxy = true
		case "on-marked-down":
			s.Shutdown = next == "shutdown-sessions"
		case "ssl":
			s.TLS = true
		case "source":
			s.Source = true
		}
	}
	return s
}

// probePath is the path of "option httpchk [METHOD] [URI [VERSION]]".
func probePath(words []string) string {
	switch len(words) {
	case 0:
		return "/"
	case 1:
		return words[0]
	}
	return words[1]
}

// splitWords cuts a line into words as HAProxy does: quotes, backslashes, # for the rest of the line.
func splitWords(line string) []string {
	var words []string
	var w strings.Builder
	open, quote := false, rune(0)
	flush := func() {
		if open {
			words = append(words, w.String())
			w.Reset()
			open = false
		}
	}
	escaped := false
	for _, c := range strings.TrimRight(line, "\r\n") {
		switch {
		case escaped:
			w.WriteRune(c)
			open, escaped = true, false
		case c == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			w.WriteRune(c)
		case c == '"' || c == '\'':
			quote, open = c, true
		case c == '#':
			flush()
			return words
		case c == ' ' || c == '\t':
			flush()
		default:
			w.WriteRune(c)
			open = true
		}
	}
	flush()
	return words
}

func wordAt(words []string, i int) string {
	if i < 0 || i >= len(words) {
		return ""
	}
	return words[i]
}

func parseNumber(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// splitAddress cuts host and port at the last colon; HAProxy has no other rule for IPv6 either.
func splitAddress(s string) (host string, port int) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, 0
	}
	return strings.Trim(s[:i], "[]"), parseNumber(s[i+1:])
}

// parseTime is a time of HAProxy: milliseconds unless it has a unit.
func parseTime(s string) (time.Duration, bool) {
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	unit := "ms"
	if end >= 0 {
		s, unit = s[:end], s[end:]
	}
	units := map[string]time.Duration{
		"us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour,
		"d": 24 * time.Hour,
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || units[unit] == 0 {
		return 0, false
	}
	return time.Duration(n) * units[unit], true
}
