//go:build integration

package site

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/page"
	"saltclusterd/integration/require"
)

const built = "../../dist/site"

var (
	reference = regexp.MustCompile(`<(a|link|script|img|source|iframe)\b[^>]*?\b(?:href|src)="([^"]*)"`)
	hasID     = regexp.MustCompile(`\bid="([^"]+)"`)
)

// pages returns the HTML of the site by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("needs mkdocs-material and Chromium: make test-site")
	}
	all, root := map[string]string{}, os.DirFS(built)
	err := fs.WalkDir(root, ".", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".html" {
			var raw []byte
			raw, err = fs.ReadFile(root, name)
			all[name] = string(raw)
		}
		return err
	})
	require.NoError(t, err)
	if len(all) < 50 {
		t.Fatalf("only %d pages", len(all))
	}
	return all
}

// TestLinks_AreThere: each link leads to a file of the site and a section of it, and nothing that a page shows or runs is
// on another host.
func TestLinks_AreThere(t *testing.T) {
	all := pages(t)
	for name, text := range all {
		if name == "404.html" {
			continue // its links are absolute, because it is shown for any path
		}
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			u, err := url.Parse(m[2])
			switch {
			case err != nil:
				t.Errorf("%s: %v", name, err)
			case u.Scheme == "data":
			case u.Host != "":
				if m[1] != "a" {
					t.Errorf("%s: %s of another host: %s", name, m[1], m[2])
				}
			default:
				target := path.Join(path.Dir(name), u.Path)
				if u.Path == "" {
					target = name
				}
				if _, err := os.Stat(path.Join(built, target)); err != nil {
					t.Errorf("%s: %v", name, err)
				} else if page, ok := all[target]; ok && u.Fragment != "" && !hasSection(page, u.Fragment) {
					t.Errorf("%s: %s has no section %s", name, target, u.Fragment)
				}
			}
		}
	}
}

func hasSection(page, id string) bool {
	for _, m := range hasID.FindAllStringSubmatch(page, -1) {
		if m[1] == id {
			return true
		}
	}
	return false
}

// TestBrowser_ShowsPages: every page fits a desktop and a phone, every other one in the dark scheme; none asks another
// host or has a mistake in its scripts; the search finds.
func TestBrowser_ShowsPages(t *testing.T) {
	all := pages(t)
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("Chromium is not installed: make test-site, as root")
	}
	server := httptest.NewServer(http.FileServer(http.Dir(built)))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	dir, err := os.MkdirTemp("", "site")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b, err := page.Start(ctx, program, dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })

	window := func(width, height int, phone bool, scheme string) {
		require.NoError(t, b.Call(ctx, "Emulation.setDeviceMetricsOverride",
			map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}, nil))
		require.NoError(t, b.Call(ctx, "Emulation.setEmulatedMedia",
			map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil))
	}
	fits := func(name string) {
		var over int
		require.NoError(t, b.Eval(ctx, `document.documentElement.scrollWidth - document.documentElement.clientWidth`, &over))
		if over > 1 {
			t.Errorf("%s is %d pixels too wide", name, over)
		}
	}
	for i, name := range slices.Sorted(maps.Keys(all)) {
		scheme := []string{"light", "dark"}[i%2] // is chosen when a page is loaded
		window(1280, 900, false, scheme)
		open(t, ctx, b, server.URL+"/"+strings.TrimSuffix(name, "index.html"))
		var dark bool
		require.NoError(t, b.Eval(ctx, `document.body.dataset.mdColorScheme === "slate"`, &dark))
		if dark != (scheme == "dark") {
			t.Errorf("%s is dark: %t, where %s is preferred", name, dark, scheme)
		}
		fits(name + " on a desktop")
		picture(t, ctx, b, name, "desktop")
		window(390, 844, true, scheme)
		fits(name + " on a phone")
		picture(t, ctx, b, name, "phone")
	}
	require.NoError(t, b.Call(ctx, "Emulation.clearDeviceMetricsOverride", nil, nil))
	open(t, ctx, b, server.URL+"/?q=witness")
	eventually(t, ctx, b, `document.querySelectorAll(".md-search-result__item a").length > 0`)
	quiet(t, b, server.URL)
}

// picture keeps what the browser shows as SALTCLUSTER_PICTURES/NAME-WHERE.png, for whoever wants to see it.
func picture(t *testing.T, ctx context.Context, b *page.Browser, name, where string) {
	t.Helper()
	dir := os.Getenv("SALTCLUSTER_PICTURES")
	if dir == "" {
		return
	}
	var shot struct{ Data []byte }
	require.NoError(t, b.Call(ctx, "Page.captureScreenshot", map[string]any{"format": "png"}, &shot))
	file := strings.ReplaceAll(strings.TrimSuffix(name, ".html"), "/", "-") + "-" + where + ".png"
	require.NoError(t, os.WriteFile(path.Join(dir, file), shot.Data, 0o644))
}

func open(t *testing.T, ctx context.Context, b *page.Browser, address string) {
	t.Helper()
	require.NoError(t, b.Call(ctx, "Page.navigate", map[string]any{"url": address}, nil))
	eventually(t, ctx, b, `document.readyState === "complete" && location.href.startsWith(`+quote(address)+`)`)
}

func quote(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

func eventually(t *testing.T, ctx context.Context, b *page.Browser, expression string) {
	t.Helper()
	var last error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ok := false
		if last = b.Eval(ctx, expression, &ok); last == nil && ok {
			return
		}
	}
	t.Fatalf("%s: not in a minute; %v", expression, last)
}

// quiet fails when a script had a mistake, or another host was asked.
func quiet(t *testing.T, b *page.Browser, address string) {
	t.Helper()
	for _, method := range []string{"Runtime.exceptionThrown", "Log.entryAdded"} {
		for _, e := range b.Events(method) {
			t.Errorf("%s: %s", method, e.Params)
		}
	}
	asked := 0
	for _, e := range b.Events("Network.requestWillBeSent") {
		var p struct{ Request struct{ URL string } }
		require.NoError(t, json.Unmarshal(e.Params, &p))
		asked++
		if u := p.Request.URL; !strings.HasPrefix(u, address+"/") && !strings.HasPrefix(u, "data:") &&
			!strings.HasPrefix(u, "blob:") && u != "about:blank" {
			t.Errorf("asked for %s", u)
		}
	}
	if asked == 0 {
		t.Error("nothing was asked")
	}
}
