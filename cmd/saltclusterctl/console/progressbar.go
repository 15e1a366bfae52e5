package console

import (
	"fmt"
	"strings"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// progressBar shows the progress of long work on standard error: a line for each step, or, on a terminal, a bar for
// steps of which it is known how much is done.
type progressBar struct {
	e    *Env
	open bool // the bar's line has no end yet
}

// NewProgressBar returns a progressBar that shows nothing yet.
func NewProgressBar(e *Env) *progressBar { return &progressBar{e: e} }

// barCells is how long a bar is.
const barCells = 24

// ShowStep shows one step.
func (t *progressBar) ShowStep(p adminapi.Progress) {
	text := fmt.Sprintf("%s: %s", Clean(p.Step), Clean(p.Message))
	if t.e.width <= 0 || p.Percent == nil {
		t.EndBar()
		fmt.Fprintln(t.e.Stderr, text)
		return
	}
	percent := min(max(*p.Percent, 0), 100)
	full := percent * barCells / 100
	line := []rune(fmt.Sprintf("[%s%s] %3d%%  %s", strings.Repeat("#", full), strings.Repeat(".", barCells-full), percent,
		text))
	if most := t.e.width - 1; len(line) > most {
		line = line[:most]
	}
	fmt.Fprintf(t.e.Stderr, "\r\x1b[K%s", string(line))
	t.open = true
}

// EndBar leaves the bar as it is and goes to the next line.
func (t *progressBar) EndBar() {
	if t.open {
		t.open = false
		fmt.Fprintln(t.e.Stderr)
	}
}

// silence is how long a verb may say nothing.
const silence = 2 * time.Second

// ShowWaiting says what is waited for when that takes longer than a moment, until done is called. Within another one it
// says nothing.
func (e *Env) ShowWaiting(format string, args ...any) (done func()) {
	if !e.Waits.CompareAndSwap(false, true) {
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
			fmt.Fprintf(e.Stderr, "waiting: %s\n", fmt.Sprintf(format, args...))
		}
	}()
	return func() {
		close(stop)
		<-ended
		e.Waits.Store(false)
	}
}
