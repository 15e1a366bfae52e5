package spool

// recent holds the newest records, so that consumers that keep up do not read them from the disk.
type recent struct {
	limit, bytes int64
	list         []Record
	sizes        []int64
}

func (r *recent) addRecord(rec Record, size int64) {
	r.list, r.sizes = append(r.list, rec), append(r.sizes, size)
	r.bytes += size
	drop := 0
	for r.bytes > r.limit && drop < len(r.list) {
		r.bytes -= r.sizes[drop]
		r.list[drop] = Record{} // the array outlives the slice
		drop++
	}
	r.list, r.sizes = r.list[drop:], r.sizes[drop:]
}

// recordsFrom returns records from number seq on; ok is false when they must be read from the disk.
func (r *recent) recordsFrom(seq uint64, most int, bytes int64) (batch []Record, ok bool) {
	if len(r.list) == 0 || seq < r.list[0].Seq {
		return nil, false
	}
	at := int(seq - r.list[0].Seq)
	for at < len(r.list) && len(batch) < most && (len(batch) == 0 || bytes > 0) {
		batch = append(batch, r.list[at])
		bytes -= r.sizes[at]
		at++
	}
	return batch, true
}

// forgetUpTo drops what all consumers are done with.
func (r *recent) forgetUpTo(upTo uint64) {
	drop := 0
	for drop < len(r.list) && r.list[drop].Seq <= upTo {
		r.bytes -= r.sizes[drop]
		r.list[drop] = Record{}
		drop++
	}
	r.list, r.sizes = r.list[drop:], r.sizes[drop:]
}
