// Package page tests the status page in a real Chromium, without a driver: the browser is talked to over a pipe
// (DevTools protocol). "make test-page" installs the browser and runs it; with -update it makes the pictures of docs/
// anew.
package page

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Browser is a Chromium with one window.
type Browser struct {
	cmd     *exec.Cmd
	out     *os.File
	session string

	mu      sync.Mutex
	last    int
	answers map[int]chan message
	events  []Event
	ended   error
}

// Event is something that the browser has told.
type Event struct {
	Method string
	Params json.RawMessage
}

type message struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start starts one with a profile of its own in dir.
func Start(ctx context.Context, program, dir string) (*Browser, error) {
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	args := []string{
		"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + dir, "--no-first-run", "--disable-gpu",
		"--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
		"--force-color-profile=srgb",
		"--proxy-server=http://127.0.0.1:9", "--proxy-bypass-list=127.0.0.1", "about:blank",
	}
	if os.Geteuid() == 0 {
		args = append([]string{"--no-sandbox"}, args...) // it refuses to run as root with one
	}
	b := &Browser{cmd: exec.CommandContext(ctx, program, args...), out: ourOut, answers: map[int]chan message{}}
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut} // descriptors 3 and 4
	b.cmd.Env = append(os.Environ(), "HOME="+dir)
	if err := b.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	theirIn.Close()
	theirOut.Close()
	go b.listen(bufio.NewReaderSize(ourIn, 1<<20))
	return b, b.attach(ctx)
}

// attach opens a window.
func (b *Browser) attach(ctx context.Context) error {
	var target struct{ TargetID string }
	if err := b.Call(ctx, "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return err
	}
	var session struct{ SessionID string }
	if err := b.Call(ctx, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true},
		&session); err != nil {
		return err
	}
	b.session = session.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log", "Audits", "Accessibility"} {
		if err := b.Call(ctx, domain+".enable", nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// Close ends it.
func (b *Browser) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = b.Call(ctx, "Browser.close", nil, nil)
	b.out.Close()
	return b.cmd.Wait()
}

func (b *Browser) listen(r *bufio.Reader) {
	for {
		raw, err := r.ReadBytes(0)
		b.mu.Lock()
		if err != nil {
			b.ended = errors.Join(errors.New("the browser has ended"), err)
			for _, c := range b.answers {
				close(c)
			}
			b.answers = map[int]chan message{}
			b.mu.Unlock()
			return
		}
		var m message
		if err := json.Unmarshal(raw[:len(raw)-1], &m); err == nil {
			if c, ok := b.answers[m.ID]; ok && m.ID != 0 {
				delete(b.answers, m.ID)
				c <- m
			} else if m.Method != "" {
				b.events = append(b.events, Event{m.Method, m.Params})
			}
		}
		b.mu.Unlock()
	}
}

// Call asks the browser to do something.
func (b *Browser) Call(ctx context.Context, method string, params any, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	if params == nil {
		raw = []byte("{}")
	}
	answer := make(chan message, 1)
	b.mu.Lock()
	if b.ended != nil {
		b.mu.Unlock()
		return b.ended
	}
	b.last++
	b.answers[b.last] = answer
	text, err := json.Marshal(message{ID: b.last, SessionID: b.session, Method: method, Params: raw})
	if err == nil {
		_, err = b.out.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	case m, ok := <-answer:
		switch {
		case !ok:
			return fmt.Errorf("%s: the browser has ended", method)
		case m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(m.Result, result)
	}
}

// Events takes what was told with that method since it was last asked.
func (b *Browser) Events(method string) (out []Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.events[:0]
	for _, e := range b.events {
		if e.Method == method {
			out = append(out, e)
		} else {
			kept = append(kept, e)
		}
	}
	b.events = kept
	return out
}

// Eval evaluates an expression in the page.
func (b *Browser) Eval(ctx context.Context, expression string, v any) error {
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	err := b.Call(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true,
		"awaitPromise": true}, &answer)
	switch {
	case err != nil:
		return err
	case answer.ExceptionDetails != nil:
		return fmt.Errorf("%s: %s", expression, answer.ExceptionDetails.Exception.Description)
	case v == nil:
		return nil
	}
	if err := json.Unmarshal(answer.Result.Value, v); err != nil {
		return fmt.Errorf("%s: %w", expression, err)
	}
	return nil
}

// Key presses a key.
func (b *Browser) Key(ctx context.Context, key string, shift bool) error {
	codes := map[string]int{"Tab": 9, "Enter": 13, " ": 32}
	p := map[string]any{"type": "keyDown", "key": key, "code": map[string]string{" ": "Space"}[key],
		"windowsVirtualKeyCode": codes[key]}
	if key != " " {
		p["code"] = key
	}
	if shift {
		p["modifiers"] = 8
	}
	switch key {
	case "Enter":
		p["text"] = "\r"
	case " ":
		p["text"] = " "
	}
	if err := b.Call(ctx, "Input.dispatchKeyEvent", p, nil); err != nil {
		return err
	}
	delete(p, "text")
	p["type"] = "keyUp"
	return b.Call(ctx, "Input.dispatchKeyEvent", p, nil)
}
