package fileserve

import "saltclusterd/sidecar/saltwire"

// The answers of a stock master, as it packs them. Each command has its own answer for a file that is not found.

var (
	emptyText = saltwire.AppendRaw(nil, "")
	emptyList = saltwire.AppendArrayHeader(nil, 0)
	emptyMap  = saltwire.AppendMapHeader(nil, 0)
	notFound  = appendPair(appendPair(saltwire.AppendMapHeader(nil, 2), "path", ""), "rel", "")
	noChunk   = appendPair(appendPair(saltwire.AppendMapHeader(nil, 2), "data", ""), "dest", "")
	noStat    = saltwire.AppendNil(saltwire.AppendRaw(saltwire.AppendArrayHeader(nil, 2), ""))
)

func appendPair(dst []byte, key, value string) []byte {
	return saltwire.AppendRaw(saltwire.AppendRaw(dst, key), value)
}

// appendStat writes list(os.stat(…)).
func appendStat(dst []byte, s *status) []byte {
	dst = saltwire.AppendArrayHeader(dst, 10)
	for _, v := range []uint64{uint64(s.Mode), s.Ino, s.Dev, uint64(s.Nlink), uint64(s.Uid), uint64(s.Gid)} {
		dst = saltwire.AppendUint(dst, v)
	}
	for _, v := range []int64{s.Size, s.Atim.Sec, s.Mtim.Sec, s.Ctim.Sec} {
		dst = saltwire.AppendInt(dst, v)
	}
	return dst
}

// foundReply is the answer of _file_find.
func foundReply(f *found) []byte {
	dst := saltwire.AppendMapHeader(make([]byte, 0, len(f.full)+len(f.rel)+128), 4)
	dst = appendPair(appendPair(dst, "path", f.full), "rel", f.rel)
	dst = appendStat(saltwire.AppendRaw(dst, "stat"), &f.status)
	return appendPair(dst, "back", rootsBackend)
}

// hashReply is the answer of _file_hash.
func hashReply(dst []byte, kind, sum string) []byte {
	return appendPair(appendPair(saltwire.AppendMapHeader(dst, 2), "hash_type", kind), "hsum", sum)
}

// chunkHead begins the answer of _serve_file: everything before the data's own bytes. It makes room for those;
// chunkTail is what follows them.
func chunkHead(size, room int, compressed bool) []byte {
	n := 2
	if compressed {
		n++
	}
	dst := saltwire.AppendMapHeader(make([]byte, 0, size+room), n)
	return saltwire.AppendRaw(dst, "data")
}

func chunkTail(dst []byte, rel string, level int) []byte {
	dst = appendPair(dst, "dest", rel)
	if level > 0 {
		dst = saltwire.AppendInt(saltwire.AppendRaw(dst, "gzip"), int64(level))
	}
	return dst
}

func listReply(names []string) []byte {
	size := 8
	for _, n := range names {
		size += len(n) + 3
	}
	dst := saltwire.AppendArrayHeader(make([]byte, 0, size), len(names))
	for _, n := range names {
		dst = saltwire.AppendRaw(dst, n)
	}
	return dst
}
