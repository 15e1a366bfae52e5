package daemon

import (
	"net/http"
	"time"

	"saltclusterd/sidecar/fanout"
)

// bodyWithin is how long a peer may take to send the body of a request. Bodies have places and bytes in common; one that sends
// a byte now and then must not keep them from the others.
const bodyWithin = 2 * time.Minute

// bounded gives the body of every request a deadline, but that of a stream of publications, which never ends.
func bounded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != fanout.Path {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyWithin)) // tests' writers have none
		}
		h.ServeHTTP(w, r)
	})
}
