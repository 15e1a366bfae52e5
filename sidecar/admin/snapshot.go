package admin

import (
	"context"
	"net/http"
	"time"

	"saltclusterd/sidecar/adminapi"
)

const (
	snapshotTimeout = 5 * time.Minute // to send or receive one
	maxSnapshot     = 1<<30 + 1<<20   // bytes of a posted file
)

// saveSnapshot streams a snapshot. A failure midway breaks the connection off, so that the client does not take a part
// for the whole.
func (s *Server) saveSnapshot(rec Recoverer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), snapshotTimeout)
		defer cancel()
		limitWrite(w, snapshotTimeout)
		p, _ := ctx.Value(peerKey{}).(peer)
		s.log.Info("snapshot asked for", "uid", p.uid)
		out := &counting{ResponseWriter: w}
		err := rec.SaveSnapshot(ctx, out)
		switch {
		case err == nil:
			s.metrics.countRequest("snapshot", "ok")
		case out.begun:
			s.log.Warn("snapshot not sent", "err", err)
			panic(http.ErrAbortHandler)
		default:
			s.writeError(w, "snapshot", toError(err))
		}
	}
}

// counting knows whether anything was written.
type counting struct {
	http.ResponseWriter
	begun bool
}

// Write implements io.Writer.
func (c *counting) Write(b []byte) (int, error) {
	if !c.begun {
		c.Header().Set("Content-Type", "application/octet-stream")
		c.begun = true
	}
	return c.ResponseWriter.Write(b)
}

func (s *Server) restoreSnapshot(rec Recoverer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		req, err := adminapi.ParseRestore(r.URL.Query())
		if err != nil {
			s.writeError(w, "restore", toError(err))
			return
		}
		control := http.NewResponseController(w)
		control.SetReadDeadline(time.Now().Add(snapshotTimeout))
		control.EnableFullDuplex() // progress is told while the file is still coming
		body := http.MaxBytesReader(w, r.Body, maxSnapshot)
		s.runLong(w, r, "restore", req.Timeout, func(ctx context.Context, p Progress) (adminapi.Outcome, error) {
			return rec.RestoreSnapshot(ctx, req, body, p)
		})
	}
}
