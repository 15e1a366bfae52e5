package mmapkeys

// usualValue is more than a key of a minion takes on an average, with what its changes have left in the heap.
const usualValue = 4 << 10

// isBehindEnd says whether a value lies behind the end of its segment of the heap, as after a power failure, but not
// farther away than anybody has ever written.
func (t *table) isBehindEnd(p pointer) bool {
	return p.length > 0 && p.length <= maxValue && p.segment() < len(t.segments) &&
		p.offset() < int64(t.b.g.Slots)*usualValue &&
		!t.hasRoom(p, int64(p.length))
}

// growHeap makes the heap as long as its slots say. Otherwise what is appended would lie where a value was that another
// slot still points to, and whoever replaces that value would overwrite it.
func (w *writer) growHeap(entries []Entry) error {
	for _, e := range entries {
		if !w.isBehindEnd(e.at) {
			continue
		}
		at := e.at.segment()
		end := e.at.offset() + sumSize + int64(e.at.length)
		if err := w.segments[at].Truncate(end); err != nil {
			return err
		}
		if err := w.segments[at].Sync(); err != nil {
			return err
		}
		w.sizes[at] = end
	}
	return nil
}
