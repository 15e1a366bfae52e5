package main

import (
	"runtime"
	"strings"
	"testing"
)

// Threads come and go while processors are kept busy: a lab throws away each that was in a namespace.
func TestOccupiedOutlivesThreads(t *testing.T) {
	for range 20 { // it is a matter of which thread does what
		busy, err := occupy(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			done := make(chan struct{})
			go func() {
				runtime.LockOSThread() // the thread ends with this goroutine
				close(done)
			}()
			<-done
		}
		if err := busy.stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// Figures that were measured while a processor rested are not taken for others.
func TestOccupiedSaysWhatHasEnded(t *testing.T) {
	busy, err := occupy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range busy.all {
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-busy.ended; err == nil || !strings.Contains(err.Error(), "has ended: signal: killed") {
		t.Errorf("%v", err)
	}
	busy.cancel()
}
