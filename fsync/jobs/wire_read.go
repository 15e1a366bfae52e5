package jobs

import (
	"encoding/binary"
	"slices"

	"saltclusterd/fsync/replica"
)

func readJID(r *replica.Reader) string {
	jid := string(r.Blob(maxName))
	if !validJID(jid) {
		r.Fail()
	}
	return jid
}

// readName reads the name of an item.
func readName(r *replica.Reader, ret bool) string {
	name := string(r.Blob(maxName))
	if ret && !validMinion(name) || !ret && !validHead(name) {
		r.Fail()
	}
	return name
}

func readDigest(r *replica.Reader) (d digest) {
	d.answer = r.Byte(1) == 1
	for n := r.Count(maxDigest); n > 0 && !r.Bad(); n-- {
		d.jobs = append(d.jobs, digested{jid: readJID(r), at: r.Varint(), sum: r.Uint64()})
	}
	return d
}

func readListed(r *replica.Reader) (l listed) {
	l.jid, l.at = readJID(r), r.Varint()
	n := r.Count(maxItems)
	const least = 3 // bytes of an item
	l.items = slices.Grow(l.items, min(int(n), r.Left()/least))
	for ; n > 0 && !r.Bad(); n-- {
		it := item{ret: r.Byte(1) == 1}
		it.name = readName(r, it.ret)
		if !it.ret {
			it.rank, it.mtime = r.Byte(rankGood), r.Varint()
			it.size = int64(r.Count(maxFile))
		}
		l.items = append(l.items, it)
	}
	return l
}

func readRecords(r *replica.Reader) (out []*record) {
	for n := r.Count(maxRecords); n > 0 && !r.Bad(); n-- {
		rec := &record{jid: readJID(r), at: r.Varint()}
		flags := r.Byte(3)
		rec.ret, rec.hasO = flags&1 != 0, flags&2 != 0
		rec.name, rec.mtime = readName(r, rec.ret), r.Varint()
		if rec.ret {
			rec.ahead, rec.mtime = rec.mtime == isAhead, 0
		}
		rec.data = r.Blob(maxFile)
		if rec.hasO {
			rec.out = r.Blob(maxFile)
		}
		if rec.hasO && !rec.ret {
			r.Fail()
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
	r := format.Read(b)
	w.flags = r.Byte(answerOff | answerAgain)
	for k := r.Count(uint64(n)); k > 0 && !r.Bad(); k-- {
		i := int(r.Count(uint64(n)))
		if i >= n {
			r.Fail()
		}
		w.which = append(w.which, i)
		if ofDigest {
			w.how = append(w.how, r.Byte(wantItems))
		}
	}
	if err := r.End(); err != nil {
		return wish{}, err
	}
	return w, nil
}
