package jobs

// record is an item on its way.
type record struct {
	jid   string
	at    int64 // time of the sender's file jid, nanoseconds
	name  string
	ret   bool
	mtime int64 // of a head file, nanoseconds
	data  []byte
	out   []byte // out.p of a return
	hasO  bool   // it has one
	ahead bool   // a return that its publisher has yet to take
}

// weight is about what a record takes in memory and on the wire.
func (r *record) weight() int {
	const rest = 160
	return rest + len(r.jid) + len(r.name) + len(r.data) + len(r.out)
}

func (r *record) item() item {
	if r.ret {
		return item{name: r.name, ret: true}
	}
	it := item{name: r.name, rank: rankOf(r.name, r.data), mtime: r.mtime, size: int64(len(r.data))}
	if r.name == noCacheFile {
		it.mtime, it.size = 0, 0
	}
	return it
}
