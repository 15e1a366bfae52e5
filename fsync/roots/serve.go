package roots

import (
	"net/http"

	"saltclusterd/fsync/content"
)

// Handler answers what other members ask at Path.
func (s *Store) Handler() http.Handler { return http.HandlerFunc(s.serveHTTP) }

func (s *Store) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.cfg.From(r.Context()); !ok {
		http.Error(w, "not a member", http.StatusForbidden)
		return
	}
	if s.run == nil {
		http.Error(w, "roots are not replicated here", http.StatusServiceUnavailable)
		return
	}
	s.transfer.Serve(s.run, w, r)
}

// source is what peers may ask for.
type source struct{ s *Store }

// Open implements content.Source.
func (src source) Open() content.Reader {
	disk := src.s.newDiskReader()
	disk.unread = true // whoever asked verifies all the same
	return sourceReader{src.s, disk}
}

// Live implements content.Source.
func (src source) Live() Hash {
	src.s.mu.Lock()
	defer src.s.mu.Unlock()
	return src.s.liveRoot
}

// sourceReader reads what is on this disk, in the database, or was there a moment ago.
type sourceReader struct {
	s    *Store
	disk *diskReader
}

// Read implements content.Reader.
func (r sourceReader) Read(h Hash) ([]byte, error) {
	b, err := r.disk.chunk(h) // most are files'; the database would be asked in vain
	if err != nil {
		b, err = r.s.Object(h)
	}
	if recent, ok := r.s.recent.get(h); ok && err != nil {
		b, err = recent, nil
	}
	return b, err
}

// Has implements content.Reader.
func (r sourceReader) Has(h Hash) bool {
	if _, ok := r.disk.where[h]; ok {
		return true
	}
	if _, ok := r.s.recent.get(h); ok {
		return true
	}
	_, err := r.s.Object(h)
	return err == nil
}

// Close implements content.Reader.
func (r sourceReader) Close() { r.disk.close() }
