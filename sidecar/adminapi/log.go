package adminapi

import (
	"context"
	"net/http"
	"time"
)

// LogLevel is the answer of GET /v1/log.
type LogLevel struct {
	Level      string    `json:"level"`          // debug, info, warning or error
	Configured string    `json:"configured"`     // option log_level
	Until      time.Time `json:"until,omitzero"` // when Configured is in force again; zero: with the next process
}

// SetLogLevelRequest is the body of POST /v1/log; the answer is a LogLevel.
type SetLogLevelRequest struct {
	Level string        `json:"level"` // empty: as configured
	For   time.Duration `json:"for,omitempty"`
}

// maxLogFor bounds the time for which a level is set.
const maxLogFor = 7 * 24 * time.Hour

// Validate bounds the time.
func (r SetLogLevelRequest) Validate() error {
	if r.For < 0 || r.For > maxLogFor {
		return Errorf(CodeInvalid, "", "a level can be set for a week at most")
	}
	return nil
}

// LogLevel asks how much the daemon logs.
func (c *Client) LogLevel(ctx context.Context) (LogLevel, error) {
	return getJSON[LogLevel](ctx, c, "/log", nil)
}

// SetLogLevel changes it, until the daemon's process ends or is replaced.
func (c *Client) SetLogLevel(ctx context.Context, r SetLogLevelRequest) (LogLevel, error) {
	return sendJSON[LogLevel](ctx, c, http.MethodPost, "/log", r)
}
