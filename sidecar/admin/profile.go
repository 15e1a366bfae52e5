package admin

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime/pprof"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// serveProfile answers with a profile of this process. It is whole in memory before it is sent: some 100 KiB.
func (s *Server) serveProfile(w http.ResponseWriter, r *http.Request) {
	q, err := adminapi.ParseProfile(r.URL.Query())
	if err != nil {
		s.writeError(w, "profile", toError(err))
		return
	}
	limitWrite(w, q.For+s.cfg.RequestTimeout)
	p, _ := r.Context().Value(peerKey{}).(peer)
	s.log.Info("profile asked for", "uid", p.uid, "kind", q.Kind, "dur", q.For)
	var file bytes.Buffer
	if err := takeProfile(r.Context(), q, &file); err != nil {
		s.writeError(w, "profile", toError(err))
		return
	}
	s.metrics.countRequest("profile", "ok")
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = file.WriteTo(w) // a client that went away needs no error
}

func takeProfile(ctx context.Context, q adminapi.ProfileQuery, w io.Writer) error {
	if q.Kind == adminapi.ProfileCPU {
		return profileCPU(ctx, q.For, w)
	}
	debug := 0
	if q.Text {
		debug = 1 // more would tell arguments
	}
	name := map[string]string{adminapi.ProfileHeap: "heap", adminapi.ProfileGoroutines: "goroutine"}[q.Kind]
	return pprof.Lookup(name).WriteTo(w, debug)
}

func profileCPU(ctx context.Context, d time.Duration, w io.Writer) error {
	if err := pprof.StartCPUProfile(w); err != nil { // there is one for the process
		return adminapi.Errorf(adminapi.CodeBusy, "wait until it is done", "a profile is being taken already")
	}
	defer pprof.StopCPUProfile()
	done := time.NewTimer(d)
	defer done.Stop()
	select {
	case <-done.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
