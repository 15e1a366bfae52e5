package statuspage

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Path is where the page is; its assets are below it.
const Path = "/status"

//go:embed assets
var assets embed.FS

// Config is what a Page needs.
type Config struct {
	Source Source
	Series *Series
	Hosts  []string // names under which it may be asked for, besides addresses and localhost
	Now    func() time.Time
	Logger *slog.Logger
}

// Page is the handler.
type Page struct {
	c       Config
	page    *template.Template
	cache   cache
	handler http.Handler
}

// policy lets the page load and do nothing but what is its own.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'"

// New makes a page.
func New(c Config) *Page {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Page{c: c, page: template.Must(template.ParseFS(assets, "assets/page.html"))}
	p.cache.now = c.Now
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, p.servePage)
	mux.HandleFunc("GET "+Path+"/{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, Path, http.StatusMovedPermanently)
	})
	mux.HandleFunc("GET "+Path+"/page.css", serveAsset("assets/page.css", "text/css; charset=utf-8"))
	mux.HandleFunc("GET "+Path+"/icon.svg", serveAsset("assets/icon.svg", "image/svg+xml"))
	mux.HandleFunc("GET "+Path+"/page.js", serveAsset("assets/page.js", "text/javascript; charset=utf-8"))
	p.handler = mux
	return p
}

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !p.isKnownHost(r.Host) {
		http.Error(w, "request the status page by this host's address or name, or as localhost",
			http.StatusMisdirectedRequest)
		return
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		http.Error(w, "not for other sites", http.StatusForbidden)
		return
	}
	p.handler.ServeHTTP(w, r)
}

// isKnownHost says whether a Host header is one that no stranger's name server can have made.
func (p *Page) isKnownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.ToLower(strings.Trim(name, "[]")), ".")
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost" || slices.ContainsFunc(p.c.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

func serveAsset(name, kind string) http.HandlerFunc {
	text, err := assets.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(text)
	}
}

// servePage answers with the page.
func (p *Page) servePage(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	g := p.cache.getFresh(ctx, p.c.Source)
	var out bytes.Buffer
	if err := p.page.Execute(&out, makeView(g, p.c.Series.Lines(), p.c.Now())); err != nil {
		p.c.Logger.Error("status page not made", "err", err)
		http.Error(w, "the page cannot be rendered; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(out.Bytes())
}
