package backoff

import (
	"context"
	"time"
)

// began is when this process did.
var began = time.Now()

// Align returns how long it is until the next multiple of every since the process began. Loops that use it with the
// same period are due together, and wake an idle process once.
func Align(every time.Duration) time.Duration { return alignAt(time.Since(began), every) }

// alignAt also takes a negative age: a test's clock may be before the start of its process.
func alignAt(age, every time.Duration) time.Duration { return every - (age%every+every)%every }

// Poll waits for the next multiple of every since the process began, and reports whether ctx is still active.
func Poll(ctx context.Context, every time.Duration) bool { return Sleep(ctx, Align(every)) }
