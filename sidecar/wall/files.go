package wall

import (
	"bytes"

	"saltclusterd/sidecar/saltwire"
)

// maxEnv bounds the name of an environment: a directory or a branch.
const maxEnv = 1024

// checkFile judges a request to the file server.
func (w *Wall) checkFile(r *Request) finding {
	raw, cmd := &r.Peek.Raw, r.Peek.Cmd
	reason, reply := "", notFound(cmd)
	switch {
	case !goodPath(raw.Path):
		reason = "path_leads_elsewhere"
		if raw.Path.Container() && (cmd == "_serve_file" || cmd == "_file_find" && !raw.Path.Empty()) {
			reply = replyRaised
		}
	case !goodPrefix(raw.Prefix):
		reason = "prefix_leads_elsewhere"
		if raw.Prefix.Container() {
			reply = replyRaised
		}
	case !goodEnv(raw.SaltEnv), !goodEnv(raw.Env), isEmpty(raw.SaltEnv):
		reason = "environment_is_a_path"
		if cmd == "_file_find" && raw.SaltEnv.Container() {
			reply = replyRaised
		}
	case !goodBackends(raw.FSBackend), !goodBackends(raw.Back):
		reason = "backend_is_left_out"
	default:
		return finding{}
	}
	return finding{FilePaths, reason, Verdict{Refused: true, Reply: reply}}
}

// pillarEnv judges the environments of a _pillar. No master answers one that is a path with anything a minion could
// use. One of 3008 keeps the pillar under the minion's id, a colon and the environment, which may be the id of another
// minion.
func (w *Wall) pillarEnv(r *Request) finding {
	raw := &r.Peek.Raw
	refused := Verdict{Refused: true, BadLoad: true}
	kept := raw.PillarEnv
	if kept.Missing() { // pillarenv_from_saltenv
		kept = raw.SaltEnv
		if kept.Form() == saltwire.FormAbsent {
			kept = raw.Env
		}
	}
	switch {
	case !goodEnv(raw.SaltEnv), !goodEnv(raw.Env), !goodEnv(raw.PillarEnv):
		return finding{FilePaths, "environment_is_a_path", refused}
	case w.keptAsAnothers(kept, r.Peek.ID):
		return finding{FilePaths, "environment_of_another_minion", refused}
	}
	return finding{}
}

func (w *Wall) keptAsAnothers(env saltwire.Value, id string) bool {
	name, ok := env.Name()
	return ok && !env.Missing() && w.isOther(id+":"+name, id)
}

// fileRecv judges a file, or a part of one, that a minion pushes.
func (w *Wall) fileRecv(r *Request) finding {
	refused := Verdict{Refused: true, Reply: replyFalse}
	if !w.policy.Load().FileRecv {
		return finding{FileRecv, "file_recv_is_off", refused}
	}
	parts, good, text, itself := 0, true, true, true // itself: the path is that of the directory for files
	err := saltwire.WalkArray(r.Peek.Raw.Path, func(part saltwire.Value) error {
		b, ok := part.Text()
		text = text && ok
		itself = ok && parts == 0 && (len(b) == 0 || string(b) == ".")
		good = good && ok && (len(b) > 0 || parts > 0) && string(b) != "." && string(b) != ".." &&
			bytes.IndexByte(b, '/') < 0 && bytes.IndexByte(b, 0) < 0
		parts++
		return nil
	})
	switch {
	case err == nil && good && parts > 0:
		return finding{}
	case err == nil && (!text || itself && r.Peek.Raw.Path.Form() != saltwire.FormAbsent):
		refused.Reply = replyRaised
	}
	return finding{FileRecv, "path_leads_elsewhere", refused}
}

// goodPath says whether a path stays below where it begins, and names no environment that leads elsewhere: masters look
// for one behind a question mark, and take bars off its beginning, which mean that a question mark is part of the path.
// A value that is neither text nor a container is not a path to a master either.
func goodPath(value saltwire.Value) bool {
	b, ok := value.Text()
	if !ok {
		return !value.Container()
	}
	b = bytes.TrimLeft(b, "|")
	if bytes.IndexByte(b, 0) >= 0 || bytes.HasPrefix(b, slash) || !staysInside(b) {
		return false
	}
	path, query, asks := bytes.Cut(b, []byte("?"))
	return !asks || staysInside(path) && goodQuery(query)
}

func goodQuery(query []byte) bool {
	for field := range bytes.FieldsFuncSeq(query, func(c rune) bool { return c == '?' || c == '&' }) {
		if env, is := bytes.CutPrefix(field, []byte("saltenv=")); is && (len(env) == 0 || !goodEnvName(env)) {
			return false
		}
	}
	return true
}

// goodBackends says whether a value can be the backends that a request is about. Stock minions name none; some may be
// named, but none left out.
func goodBackends(value saltwire.Value) bool {
	if value.Missing() {
		return true
	}
	if b, ok := value.Text(); ok {
		return goodBackendNames(b)
	}
	good := true
	err := saltwire.WalkArray(value, func(name saltwire.Value) error {
		b, ok := name.Text()
		good = good && ok && goodBackendNames(b)
		return nil
	})
	return err == nil && good
}

func goodBackendNames(names []byte) bool {
	return !bytes.HasPrefix(names, []byte("-")) && !bytes.Contains(names, []byte(",-"))
}

// goodPrefix says the same of what lists of files are to begin with. Masters strip its slashes.
func goodPrefix(value saltwire.Value) bool {
	b, ok := value.Text()
	if !ok {
		return !value.Container()
	}
	return bytes.IndexByte(b, 0) < 0 && staysInside(b)
}

var slash = []byte("/")

// staysInside says whether following a relative path never leads above its beginning.
func staysInside(path []byte) bool {
	depth := 0
	for len(path) > 0 {
		part := path
		if at := bytes.IndexByte(path, '/'); at >= 0 {
			part, path = path[:at], path[at+1:]
		} else {
			path = nil
		}
		switch string(part) {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return false
			}
		default:
			depth++
		}
	}
	return true
}

// goodEnv says whether a value can be an environment: absent, None, text or a number. A branch of git may have slashes
// in its name; what leads upwards, or begins at the root, has no business there.
func goodEnv(value saltwire.Value) bool {
	b, ok := value.Text()
	if !ok {
		return !value.Container()
	}
	return goodEnvName(b)
}

func goodEnvName(b []byte) bool {
	if len(b) > maxEnv || bytes.IndexByte(b, 0) >= 0 || bytes.HasPrefix(b, slash) {
		return false
	}
	return !hasParentPart(b) && (len(b) == 0 || len(bytes.Trim(b, "./")) > 0)
}

// isEmpty says whether a value is text without anything in it. As an environment it is the place where all of them are.
func isEmpty(value saltwire.Value) bool {
	b, ok := value.Text()
	return ok && len(b) == 0
}

// hasParentPart says whether a path has a part that leads upwards.
func hasParentPart(path []byte) bool {
	for at := bytes.Index(path, dots); at >= 0; at = bytes.Index(path, dots) {
		before := at == 0 || path[at-1] == '/'
		path = path[at+2:]
		if before && (len(path) == 0 || path[0] == '/') {
			return true
		}
	}
	return false
}

var dots = []byte("..")
