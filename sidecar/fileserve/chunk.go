package fileserve

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"saltclusterd/sidecar/saltwire"
)

// headRoom is more than what stands in an answer beside data and path.
const headRoom = 64

// chunkKey names an answer of _serve_file.
type chunkKey struct {
	identity
	rel         string
	loc         int64
	level, size int
}

// serveFile answers _serve_file.
func (s *Server) serveFile(ctx context.Context, r *room, set *Settings, minion string, l Load) ([]byte, error) {
	if !l.HasPath || !l.HasLoc || !l.HasEnv {
		return noChunk, nil
	}
	if err := r.reserveMemory(ctx, int64(set.Buffer)); err != nil {
		return nil, err
	}
	f, err := s.searchFile(ctx, set, l.Path, l.Env)
	if err != nil {
		return nil, err
	}
	if f != nil && f.otherServed {
		return nil, ErrForward
	}
	key := transferKey{minion, l.Env, l.Path}
	if l.Loc > 0 {
		if t := s.transfers.findReplaced(key, f, s.cfg.Now()); t != nil && t.isKnown(l.Loc) {
			return s.goOn(ctx, set, t, l)
		}
	}
	if f == nil {
		return set.missingReply(l.Path, noChunk)
	}
	open := f.openFile
	if l.Loc == 0 {
		if p := s.transfers.beginTransfer(key, f, s.cfg.Now(), f.Size > int64(set.Buffer)); p != nil {
			open = p.openFile
		}
	}
	return s.chunkReply(ctx, set, l, f.fileIdentity(), f.rel, open)
}

// goOn answers from the version a transfer began with.
func (s *Server) goOn(ctx context.Context, set *Settings, t *transfer, l Load) ([]byte, error) {
	s.metrics.pinned.Inc()
	if t.isAtEnd(l.Loc) {
		return chunkTail(saltwire.AppendRaw(chunkHead(headRoom, len(t.rel), false), ""), t.rel, 0), nil
	}
	return s.chunkReply(ctx, set, l, t.id, t.rel, t.pin.openFile)
}

// chunkReply is the answer with one chunk of a version: from memory, else read once for all who ask.
func (s *Server) chunkReply(ctx context.Context, set *Settings, l Load, id identity, rel string,
	open func() (*os.File, error)) ([]byte, error) {
	key := chunkKey{id, rel, l.Loc, l.Gzip, set.Buffer}
	if reply, ok := s.chunks.get(key); ok {
		s.metrics.hits.Inc()
		return reply, nil
	}
	return s.reading.doOnce(ctx, s.makers, key, func(ctx context.Context) ([]byte, error) {
		if reply, ok := s.chunks.get(key); ok {
			return reply, nil
		}
		reply, n, still, err := s.readChunk(ctx, key, open)
		if err != nil {
			return nil, err
		}
		s.metrics.read.Add(float64(n))
		if l.Gzip > 0 && n > 0 {
			if reply, err = s.compressReply(ctx, reply[len(reply)-n:], rel, l.Gzip); err != nil {
				return nil, err
			}
		} else {
			reply = chunkTail(reply, rel, 0)
		}
		if still && id.isSettled(s.cfg.Now()) {
			s.chunks.put(key, reply, int64(cap(reply)+len(rel))+headRoom)
		}
		return reply, nil
	})
}

// readChunk reads a chunk into the beginning of an answer, which ends in its n bytes. still says that the file did not
// change meanwhile.
func (s *Server) readChunk(ctx context.Context, key chunkKey,
	open func() (*os.File, error)) (reply []byte, n int, still bool, err error) {
	if err := s.disk.takeSlot(ctx, s.cfg.SlotTimeout); err != nil {
		return nil, 0, false, err
	}
	defer s.disk.freeSlot()
	file, err := open()
	if err != nil {
		return nil, 0, false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	n = int(min(int64(key.size), max(0, int64(key.identity.size)-key.loc)))
	if n == 0 {
		if err := atEnd(file, key.loc); err != nil {
			return nil, 0, false, fmt.Errorf("read %s: %w", file.Name(), err)
		}
	}
	reply = chunkHead(n, headRoom+len(key.rel), false)
	reply = saltwire.AppendRawHeader(reply, n)
	at := len(reply)
	reply = reply[:at+n]
	if got, err := file.ReadAt(reply[at:], key.loc); got != n || err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, false, fmt.Errorf("read %s: %d bytes instead of %d: %w", file.Name(), got, n,
			errors.Join(errChanged, err))
	}
	after, err := statFile(file)
	return reply, n, err == nil && after.fileIdentity() == key.identity, err
}

// errUnsized says that a file has more than its size says, as those of /proc and of some other file systems do.
var errUnsized = errors.New("the size of the file is not that of its content")

// atEnd returns nil where a stock master finds nothing more to read: it goes there, which a file system may refuse, and
// reads whatever the size of the file.
func atEnd(file *os.File, loc int64) error {
	if _, err := file.Seek(loc, io.SeekStart); err != nil {
		return err
	}
	switch got, err := file.ReadAt(make([]byte, 1), loc); {
	case got > 0:
		return errUnsized
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}

// gzippers are compressors by level; one takes more than a megabyte.
var gzippers [maxGzip + 1]sync.Pool

// compressReply makes an answer of a compressed chunk.
func (s *Server) compressReply(ctx context.Context, data []byte, rel string, level int) ([]byte, error) {
	if err := s.cpu.takeSlot(ctx, hashWaits*s.cfg.SlotTimeout); err != nil {
		return nil, err
	}
	defer s.cpu.freeSlot()
	z, ok := gzippers[level].Get().(*gzip.Writer)
	if !ok {
		var err error
		if z, err = gzip.NewWriterLevel(nil, level); err != nil {
			return nil, fmt.Errorf("compress: %w", err)
		}
	}
	defer gzippers[level].Put(z)
	var out sink
	z.Reset(&out)
	_, err := z.Write(data)
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	reply := chunkHead(len(out), headRoom+len(rel), true)
	return chunkTail(saltwire.AppendRaw(reply, []byte(out)), rel, level), nil
}

// sink collects what is written.
type sink []byte

func (s *sink) Write(p []byte) (int, error) {
	*s = append(*s, p...)
	return len(p), nil
}
