package fileserve

import (
	"path"
	"strings"
)

// found is a file that find_file has found.
type found struct {
	status
	full string // as stock joins it
	rel  string

	// otherServed says that a stock master would serve another file than it has found, or none: it opens the path without
	// its "..", which behind a link lead from where that leads.
	otherServed bool

	// Without fileserver_followsymlinks: the place the file really has. Else empty.
	realRoot, realRel string
}

// findFile is roots.find_file, behind Fileserver.find_file. A nil result means that the file was not found. Errors:
// ErrForward, or what the disk says.
func (s *Settings) findFile(name, env string) (*found, error) {
	if strings.Contains(name, "?") {
		return nil, ErrForward // a query, which is not part of the path
	}
	if strings.HasPrefix(name, "/") || strings.Contains(name, "../") {
		return nil, nil
	}
	if isOwn(name) {
		return nil, nil
	}
	if !plainPath(name) || !plainName(env) {
		return nil, ErrForward
	}
	dirs, _, _ := s.envDirs(env)
	rel := path.Clean(name)
	for _, dir := range dirs {
		f, err := s.findIn(dir, rel)
		if err != nil || f != nil {
			return f, err
		}
	}
	return nil, nil
}

// plainName refuses what has no place in a name of an environment, and might be logged or made a file's name.
func plainName(env string) bool {
	for i := range len(env) {
		if env[i] < 0x20 || env[i] == 0x7f {
			return false
		}
	}
	return true
}

// findIn looks for a file in one root.
func (s *Settings) findIn(dir, rel string) (*found, error) {
	f := &found{full: joinPath(dir, rel), rel: rel}
	root, name := path.Clean(dir), path.Clean(f.full)
	if s.Follow {
		if !isInside(name, root) {
			return nil, nil
		}
	} else if root, name = realPath(root), realPath(name); !isInside(name, root) {
		return nil, nil
	} else {
		f.realRoot, f.realRel = root, strings.TrimPrefix(strings.TrimPrefix(name, root), "/")
	}
	var ok bool
	var err error
	if f.status, ok, err = statPath(f.full); err != nil {
		return nil, err
	}
	if !ok {
		if s.isHidden(f.full) {
			return nil, ErrForward
		}
		return nil, nil
	}
	if !f.isRegular() || s.ignore.isIgnored(f.full) {
		return nil, nil
	}
	if s.Follow && strings.Contains(f.full, "/../") {
		opened, ok, err := statPath(name)
		if err != nil {
			return nil, err
		}
		f.otherServed = !ok || opened.fileIdentity() != f.fileIdentity()
	}
	return f, nil
}
