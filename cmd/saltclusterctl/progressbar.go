package main

import (
	"fmt"
	"strings"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// progressBar shows the progress of long work on standard error: a line for each step, or, on a terminal, a bar for
// steps of which it is known how much is done.
type progressBar struct {
	e    *env
	open bool // the bar's line has no end yet
}

// barCells is how long a bar is.
const barCells = 24

// showStep shows one step.
func (t *progressBar) showStep(p adminapi.Progress) {
	text := fmt.Sprintf("%s: %s", clean(p.Step), clean(p.Message))
	if t.e.width <= 0 || p.Percent == nil {
		t.endBar()
		fmt.Fprintln(t.e.stderr, text)
		return
	}
	percent := min(max(*p.Percent, 0), 100)
	full := percent * barCells / 100
	line := []rune(fmt.Sprintf("[%s%s] %3d%%  %s", strings.Repeat("#", full), strings.Repeat(".", barCells-full), percent,
		text))
	if most := t.e.width - 1; len(line) > most {
		line = line[:most]
	}
	fmt.Fprintf(t.e.stderr, "\r\x1b[K%s", string(line))
	t.open = true
}

// endBar leaves the bar as it is and goes to the next line.
func (t *progressBar) endBar() {
	if t.open {
		t.open = false
		fmt.Fprintln(t.e.stderr)
	}
}

// silence is how long a verb may say nothing.
const silence = 2 * time.Second

// showWaiting says what is waited for when that takes longer than a moment, until done is called. Within another one it
// says nothing.
func (e *env) showWaiting(format string, args ...any) (done func()) {
	if !e.waits.CompareAndSwap(false, true) {
		return func() {}
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTimer(silence)
		defer t.Stop()
		select {
		case <-stop:
		case <-t.C:
			fmt.Fprintf(e.stderr, "waiting: %s\n", fmt.Sprintf(format, args...))
		}
	}()
	return func() {
		close(stop)
		<-ended
		e.waits.Store(false)
	}
}
