//go:build integration

package page

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/statuspage"
	"saltclusterd/sidecar/statuspage/statuspagetest"
)

var update = flag.Bool("update", false, "make the pictures of docs/ anew")

// rig is a browser that looks at a page, served as saltclusterd serves it.
type rig struct {
	*Browser
	t      *testing.T
	ctx    context.Context
	source *statuspagetest.Source
	server *health.Server
	addr   string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("needs Chromium: make test-page")
	}
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("Chromium is not installed: make test-page, as root")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, source: &statuspagetest.Source{}, addr: "127.0.0.1:0"}
	r.serve()
	dir, err := os.MkdirTemp("", "page") // a browser that ends may still write
	r.must(err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r.Browser, err = Start(ctx, program, dir)
	r.must(err)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// serve opens the health server with the page, again at the same address.
func (r *rig) serve() {
	r.t.Helper()
	page := statuspage.New(statuspage.Config{
		Source: r.source, Series: statuspagetest.Series(), Now: clock(),
	})
	var err error
	r.server, err = health.NewServer(health.ServerConfig{
		Listen: r.addr, Checker: health.NewChecker(health.CheckerConfig{}),
		Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Page: page,
	})
	r.must(err)
	r.must(r.server.Open(r.ctx))
	srv := r.server
	r.t.Cleanup(func() { _ = srv.Close() })
	bound, _ := r.server.Addr()
	r.addr = bound.String()
}

// clock goes on from when the cluster of the test is looked at.
func clock() func() time.Time {
	began := time.Now()
	return func() time.Time { return statuspagetest.Now.Add(time.Since(began)) }
}

func (r *rig) must(err error) {
	r.t.Helper()
	require.NoError(r.t, err)
}

// eventually waits for an expression to be true.
func (r *rig) eventually(what, expression string) {
	r.t.Helper()
	var last error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ok := false
		if last = r.Eval(r.ctx, expression, &ok); last == nil && ok {
			return
		}
	}
	r.t.Fatalf("%s: not in a minute; %v", what, last)
}

// open loads the page in a window of that size.
func (r *rig) open(width, height int, phone, dark bool) {
	r.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	r.must(r.Call(r.ctx, "Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}, nil))
	r.must(r.Call(r.ctx, "Emulation.setEmulatedMedia",
		map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil))
	r.must(r.Call(r.ctx, "Page.navigate", map[string]any{"url": "http://" + r.addr + "/status"}, nil))
	r.eventually("the page", `document.readyState === "complete" && location.pathname === "/status"`)
}

// quiet fails when the browser complained about anything, or asked anybody else.
func (r *rig) quiet() {
	r.t.Helper()
	for _, method := range []string{"Runtime.exceptionThrown", "Log.entryAdded", "Audits.issueAdded",
		"Runtime.consoleAPICalled"} {
		for _, e := range r.Events(method) {
			r.t.Errorf("%s: %s", method, e.Params)
		}
	}
	for _, e := range r.Events("Network.requestWillBeSent") {
		var p struct{ Request struct{ URL string } }
		r.must(json.Unmarshal(e.Params, &p))
		if u := p.Request.URL; !strings.HasPrefix(u, "http://"+r.addr+"/status") && !strings.HasPrefix(u, "data:") &&
			u != "about:blank" {
			r.t.Errorf("asked for %s", u)
		}
	}
}

// TestLayout: it can be read at every width, in both schemes, and nothing overflows; the pictures of docs/ are what was
// seen.
func TestLayout(t *testing.T) {
	r := newRig(t)
	for _, w := range []struct {
		name          string
		width, height int
		phone, dark   bool
		picture       string
	}{
		{"desktop", 1200, 800, false, false, "status-desktop.png"},
		{"phone", 390, 844, true, false, "status-phone.png"},
		{"small phone, dark", 320, 568, true, true, ""},
		{"tablet", 768, 1024, true, false, ""},
		{"just wide enough for all columns", 1040, 800, false, false, ""},
		{"desktop, dark", 1200, 800, false, true, ""},
	} {
		t.Run(w.name, func(t *testing.T) {
			r.t = t
			r.open(w.width, w.height, w.phone, w.dark)
			var wide []string
			r.must(r.Eval(r.ctx, `[...document.querySelectorAll("body *")].filter(e => e.getClientRects().length && !e.closest("thead, .skip, svg") &&
				e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.tagName + "." + e.className + ": " + e.textContent.slice(0, 40))`, &wide))
			if len(wide) > 0 {
				t.Errorf("wider than the window: %q", wide)
			}
			var faint []string
			r.must(r.Eval(r.ctx, contrast, &faint))
			if len(faint) > 0 {
				t.Errorf("hard to read: %q", faint)
			}
			var small []string
			r.must(r.Eval(r.ctx,
				`[...document.querySelectorAll("a:not(.skip), button, summary")].filter(e => e.getBoundingClientRect().height < 24).map(e => e.textContent)`, &small))
			if len(small) > 0 {
				t.Errorf("hard to hit: %q", small)
			}
			r.quiet()
			r.picture(w.picture)
		})
	}
	r.t = t
}

// contrast lists texts with less contrast than 4.5 to 1 (WCAG 2, AA).
const contrast = `(() => {
	const parse = c => (c.match(/[\d.]+/g) || []).map(Number);
	const light = c => { const [r, g, b] = c.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const ground = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
	const out = [];
	for (const e of document.querySelectorAll("body *")) {
		if (e.closest("svg, .skip") || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
		const a = light(parse(getComputedStyle(e).color)), b = light(ground(e));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) out.push(e.textContent.slice(0, 30) + " " + ratio.toFixed(1));
	}
	return out;
})()`

// picture takes one of the whole page, and keeps it where docs/ has it when asked to.
func (r *rig) picture(name string) {
	r.t.Helper()
	var shot struct{ Data string }
	r.must(r.Call(r.ctx, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot))
	raw, err := base64.StdEncoding.DecodeString(shot.Data)
	r.must(err)
	if !bytes.HasPrefix(raw, []byte("\x89PNG")) || len(raw) < 10_000 {
		r.t.Errorf("the picture has %d bytes", len(raw))
	}
	if name == "" || !*update {
		return
	}
	seen, err := png.Decode(bytes.NewReader(raw))
	r.must(err)
	var small bytes.Buffer
	r.must((&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, plain(seen)))
	dir := "../../docs/images"
	r.must(os.MkdirAll(dir, 0o755))
	r.must(os.WriteFile(filepath.Join(dir, name), small.Bytes(), 0o644))
}

// plain is a picture in its 256 commonest colours: a third of the size.
func plain(img image.Image) image.Image {
	count := map[color.RGBA]int{}
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			count[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	var few color.Palette
	for _, c := range all[:min(len(all), 256)] {
		few = append(few, c)
	}
	out := image.NewPaletted(img.Bounds(), few)
	draw.Draw(out, out.Bounds(), img, img.Bounds().Min, draw.Src)
	return out
}

// TestKeyboard: everything can be reached and used with the Tab and Enter keys alone, and is seen to be where one is.
func TestKeyboard(t *testing.T) {
	r := newRig(t)
	r.open(1200, 800, false, false)
	var reached []string
	for range 20 {
		r.must(r.Key(r.ctx, "Tab", false))
		var at struct {
			Name    string
			Outline bool
		}
		r.must(r.Eval(r.ctx, `(() => { const e = document.activeElement; return {Name: e === document.body ? "" : e.textContent.trim(),
			Outline: e === document.body || getComputedStyle(e).outlineStyle !== "none"}; })()`, &at))
		if at.Name == "" {
			break
		}
		if !at.Outline {
			t.Errorf("it cannot be seen that the keyboard is at %q", at.Name)
		}
		reached = append(reached, at.Name)
	}
	if got := strings.Join(reached, "|"); got != "skip to the content|pause|members|ring|work|jobs|minions|roots|absent" {
		t.Errorf("in turn: %s", got)
	}
	r.must(r.Eval(r.ctx, `document.querySelector("summary").focus()`, nil))
	r.must(r.Key(r.ctx, "Enter", false))
	r.eventually("closed by a key", `!document.querySelector("details").open`)
	r.must(r.Eval(r.ctx, `document.getElementById("pause").focus()`, nil))
	r.must(r.Key(r.ctx, " ", false))
	r.eventually("paused by a key", `document.getElementById("pause").getAttribute("aria-pressed") === "true"`)
	r.must(r.Eval(r.ctx, `document.querySelector(".skip").focus()`, nil))
	r.must(r.Key(r.ctx, "Enter", false))
	r.eventually("at the content", `document.activeElement.id === "main"`)
	r.quiet()
}

// TestAccessibleTree: who listens instead of looking hears headings, tables and pictures by their names.
func TestAccessibleTree(t *testing.T) {
	r := newRig(t)
	r.open(1200, 800, false, false)
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value string }
		}
	}
	r.must(r.Call(r.ctx, "Accessibility.getFullAXTree", nil, &tree))
	seen := map[string]int{}
	for _, n := range tree.Nodes {
		if n.Ignored {
			continue
		}
		seen[n.Role.Value]++
		switch role := n.Role.Value; role {
		case "image", "img", "button", "link", "progressbar", "region", "navigation", "heading", "progressIndicator":
			if strings.TrimSpace(n.Name.Value) == "" {
				t.Errorf("%s without a name", role)
			}
		}
	}
	for role, least := range map[string]int{"region": 7, "table": 5, "columnheader": 20, "rowheader": 15, "heading": 8,
		"main": 1, "banner": 1} {
		if seen[role] < least {
			t.Errorf("%d of %s, not %d: %v", seen[role], role, least, seen)
		}
	}
}

// TestLive: what changes is shown by itself, without losing what was closed or where the keyboard is; and old news are
// called old.
func TestLive(t *testing.T) {
	r := newRig(t)
	r.open(1200, 800, false, false)
	r.must(r.Eval(r.ctx,
		`document.querySelector("details").open = false; document.querySelector("summary").focus(); window.kept = true`, nil))
	r.source.Change(func(st *adminapi.Status) {
		st.Problems = nil
		st.Members[2].Version = "0.9.1"
	})
	r.eventually("what has changed", `document.getElementById("h-problems").textContent === "no problems" && document.title.startsWith("no problems") &&
		document.getElementById("members").textContent.includes("0.9.1")`)
	r.eventually("the same page, as it was left",
		`window.kept && !document.querySelector("details").open && document.activeElement.tagName === "SUMMARY"`)
	r.quiet()
	r.must(r.server.Close())
	r.eventually("that it is old", `document.getElementById("stale").textContent.includes("old")`)
	for _, method := range []string{"Log.entryAdded", "Network.requestWillBeSent"} {
		r.Events(method) // that nobody answered
	}
	r.serve()
	r.eventually("that it is not any more", `document.getElementById("stale").textContent === ""`)
	r.must(r.Eval(r.ctx, `document.getElementById("pause").click()`, nil))
	r.source.Change(nil)
	r.Events("Network.requestWillBeSent")
	select {
	case <-time.After(12 * time.Second): // two turns and more: nothing is to happen
	case <-r.ctx.Done():
	}
	if asked := r.Events("Network.requestWillBeSent"); len(asked) > 0 {
		t.Errorf("asked while paused: %s", asked[0].Params)
	}
}

// TestWithoutScript: the first view is whole, and comes again by itself.
func TestWithoutScript(t *testing.T) {
	r := newRig(t)
	r.must(r.Call(r.ctx, "Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil))
	r.must(r.Call(r.ctx, "Page.navigate", map[string]any{"url": "http://" + r.addr + "/status"}, nil))
	r.eventually("the page", `document.readyState === "complete" && !!document.getElementById("roots")`)
	var text string
	r.must(r.Eval(r.ctx, `document.body.innerText`, &text))
	for _, want := range []string{"2 warnings", "start the salt-master", "50.2 %", "waiting for 252", "3012 present",
		"revision 318"} {
		check.Contains(t, text, want)
	}
	if strings.Contains(text, "pause") {
		t.Error("a button that does nothing is shown")
	}
	loads := func() int { return len(r.Events("Page.loadEventFired")) }
	loads()
	deadline := time.Now().Add(time.Minute)
	for loads() == 0 {
		if time.Now().After(deadline) {
			t.Fatal("it does not come again")
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// TestForeignPage: a page of somebody else in the same browser can neither read it nor frame it.
func TestForeignPage(t *testing.T) {
	r := newRig(t)
	foreign, err := (&net.ListenConfig{}).Listen(r.ctx, "tcp", "127.0.0.1:0")
	r.must(err)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><iframe src="http://%s/status"></iframe>`, r.addr)
	})}
	go func() {
		check.ErrorIs(t, srv.Serve(foreign), http.ErrServerClosed)
	}()
	t.Cleanup(func() { _ = srv.Close() })
	r.must(r.Call(r.ctx, "Page.navigate", map[string]any{"url": "http://" + foreign.Addr().String() + "/"}, nil))
	r.eventually("the foreign page", `document.readyState === "complete" && frames.length === 1`)
	var read string
	r.must(r.Eval(r.ctx, fmt.Sprintf(`fetch("http://%s/status").then(a => a.text(), e => "refused")`, r.addr), &read))
	check.Equal(t, read, "refused", "read")
	var framed bool
	r.must(r.Eval(r.ctx,
		`(() => { try { return frames[0].document.body.textContent.includes("production"); } catch (e) { return false; } })()`, &framed))
	if framed {
		t.Error("framed and read")
	}
	refused := false
	for _, e := range r.Events("Log.entryAdded") {
		refused = refused || strings.Contains(string(e.Params), "frame")
	}
	if !refused {
		t.Error("no word of the browser that the frame is refused")
	}
}
