package jobs

import (
	"encoding/binary"
	"slices"
)

// reader takes values off b; the first that is not there or not allowed makes it bad.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() { r.bad, r.b = true, nil }

func (r *reader) count(limit uint64) uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > limit {
		r.fail()
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) number() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) byte(most byte) byte {
	if len(r.b) == 0 || r.b[0] > most {
		r.fail()
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) blob(limit uint64) []byte {
	n := r.count(limit)
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) jid() string {
	jid := string(r.blob(maxName))
	if !validJID(jid) {
		r.fail()
	}
	return jid
}

// name reads the name of an item.
func (r *reader) name(ret bool) string {
	name := string(r.blob(maxName))
	if ret && !validMinion(name) || !ret && !validHead(name) {
		r.fail()
	}
	return name
}

func (r *reader) digest() (d digest) {
	d.answer = r.byte(1) == 1
	for n := r.count(maxDigest); n > 0 && !r.bad; n-- {
		j := digested{jid: r.jid(), at: r.number()}
		if len(r.b) < 8 {
			r.fail()
			return d
		}
		j.sum, r.b = binary.BigEndian.Uint64(r.b), r.b[8:]
		d.jobs = append(d.jobs, j)
	}
	return d
}

func (r *reader) listed() (l listed) {
	l.jid, l.at = r.jid(), r.number()
	n := r.count(maxItems)
	const least = 3 // bytes of an item
	l.items = slices.Grow(l.items, min(int(n), len(r.b)/least))
	for ; n > 0 && !r.bad; n-- {
		it := item{ret: r.byte(1) == 1}
		it.name = r.name(it.ret)
		if !it.ret {
			it.rank, it.mtime = r.byte(rankGood), r.number()
			it.size = int64(r.count(maxFile))
		}
		l.items = append(l.items, it)
	}
	return l
}

func (r *reader) records() (out []*record) {
	for n := r.count(maxRecords); n > 0 && !r.bad; n-- {
		rec := &record{jid: r.jid(), at: r.number()}
		flags := r.byte(3)
		rec.ret, rec.hasO = flags&1 != 0, flags&2 != 0
		rec.name, rec.mtime = r.name(rec.ret), r.number()
		if rec.ret {
			rec.ahead, rec.mtime = rec.mtime == isAhead, 0
		}
		rec.data = r.blob(maxFile)
		if rec.hasO {
			rec.out = r.blob(maxFile)
		}
		if rec.hasO && !rec.ret {
			r.fail()
		}
		out = append(out, rec)
	}
	return out
}

// Flags of an answer.
const (
	answerOff   = 1 // the receiver keeps no jobs of others
	answerAgain = 2 // another peer is about to send some of it: compare again
)

// Of a job in a digest the receiver wants:
const (
	wantAll   = 1 // it has nothing of it
	wantItems = 2 // something differs
)

// wish is an answer to a digest or to items: what is to be sent, by its place there.
type wish struct {
	flags byte
	which []int
	how   []byte // wantAll or wantItems; only of a digest
}

func (w wish) encode() []byte {
	out := binary.AppendUvarint([]byte{w.flags}, uint64(len(w.which)))
	for i, n := range w.which {
		out = binary.AppendUvarint(out, uint64(n))
		if w.how != nil {
			out = append(out, w.how[i])
		}
	}
	return out
}

// decodeWish reads an answer to something with n places.
func decodeWish(b []byte, n int, ofDigest bool) (w wish, err error) {
	r := &reader{b: b}
	w.flags = r.byte(answerOff | answerAgain)
	for k := r.count(uint64(n)); k > 0 && !r.bad; k-- {
		i := int(r.count(uint64(n)))
		if i >= n {
			r.fail()
		}
		w.which = append(w.which, i)
		if ofDigest {
			w.how = append(w.how, r.byte(wantItems))
		}
	}
	if r.bad || len(r.b) > 0 {
		return wish{}, errWire
	}
	return w, nil
}
