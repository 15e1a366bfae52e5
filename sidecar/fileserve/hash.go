package fileserve

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"

	"saltclusterd/sidecar/saltwire"
)

const (
	hashBuffer = 256 << 10
	hashWeight = 256 // of one that is remembered
	hashWaits  = 20  // times Config.SlotTimeout is what a file waits for its turn to be hashed

	// quickHash is up to what size a file does not wait for those that take many seconds.
	quickHash = 16 << 20
)

type hashKey struct {
	identity
	kind string
}

// hashOf answers _file_hash and _file_hash_and_stat.
func (s *Server) hashOf(ctx context.Context, set *Settings, l Load, withStat bool) ([]byte, error) {
	none := emptyText
	if withStat {
		none = noStat
	}
	if !l.HasPath || !l.HasEnv {
		return none, nil
	}
	f, err := s.searchFile(ctx, set, l.Path, l.Env)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return set.missingReply(l.Path, none)
	}
	if !set.keepsHash(l.Env, f.rel) {
		return nil, ErrForward
	}
	sum, err := s.fileHash(ctx, set, f)
	if err != nil {
		return nil, err
	}
	if !withStat {
		return hashReply(nil, set.HashType, sum), nil
	}
	dst := saltwire.AppendArrayHeader(make([]byte, 0, 2*len(sum)+128), 2)
	return appendStat(hashReply(dst, set.HashType, sum), &f.status), nil
}

// What file systems take of a name and of a path.
const (
	maxName = 255
	maxPath = 4095
)

// keepsHash says whether a stock master can make a name of a file for that file's hash: without one it stumbles, and
// has no hash.
func (s *Settings) keepsHash(env, rel string) bool {
	if _, _, dynamic := s.envDirs(env); dynamic {
		env = dynamicEnv
	}
	more := len(".hash.") + len(s.HashType)
	return len(path.Base(rel))+more <= maxName && len(s.HashDir)+len(env)+len(rel)+len("//")+more <= maxPath
}

// fileHash is the hash of a file as it is: from memory, else once for all who ask.
func (s *Server) fileHash(ctx context.Context, set *Settings, f *found) (string, error) {
	key := hashKey{f.fileIdentity(), set.HashType}
	if sum, ok := s.hashes.get(key); ok {
		s.metrics.hits.Inc()
		return sum, nil
	}
	return s.hashing.doOnce(ctx, s.makers, key, func(ctx context.Context) (string, error) {
		if sum, ok := s.hashes.get(key); ok {
			return sum, nil
		}
		turn := s.hashers
		if f.Size <= quickHash {
			turn = s.quick
		}
		if err := turn.takeSlot(ctx, hashWaits*s.cfg.SlotTimeout); err != nil {
			return "", err
		}
		defer turn.freeSlot()
		sum, still, err := set.hashFile(ctx, f)
		if err != nil {
			return "", err
		}
		s.metrics.hashed.Add(float64(f.Size))
		if still && key.isSettled(s.cfg.Now()) {
			s.hashes.put(key, sum, hashWeight)
		}
		return sum, nil
	})
}

// hashFile reads a whole file, which may take longer than anybody waits for it. still says that it did not change
// meanwhile.
func (s *Settings) hashFile(ctx context.Context, f *found) (sum string, still bool, err error) {
	file, err := f.openFile()
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	h := s.hash.New()
	n, buf := int64(0), make([]byte, hashBuffer)
	for {
		m, err := file.Read(buf)
		_, _ = h.Write(buf[:m]) // hashes do not fail
		n += int64(m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			return "", false, fmt.Errorf("read %s: %w", f.full, err)
		}
	}
	after, err := statFile(file)
	return hex.EncodeToString(h.Sum(nil)), err == nil && after.fileIdentity() == f.fileIdentity() && n == f.Size, err
}
