package state

// requestRecord is what is remembered of an applied request.
type requestRecord struct {
	ID      string   `json:"id"`
	Seq     uint64   `json:"seq"`
	Results []Result `json:"results"`
}

// requestLog remembers the last requests and their results, so that a request
// that comes again is answered and not applied again. It is bounded; floor
// tells how far its memory reaches.
type requestLog struct {
	seq     uint64 // requests ever recorded
	floor   uint64 // seq of the newest forgotten request
	results int    // results held
	byID    table[string, requestRecord]
	bySeq   table[uint64, requestRecord]
}

func newRequestLog() requestLog {
	return requestLog{byID: newTable[string, requestRecord](), bySeq: newTable[uint64, requestRecord]()}
}

func (l requestLog) clone() requestLog {
	l.byID, l.bySeq = l.byID.clone(), l.bySeq.clone()
	return l
}

// restoreRecord puts a record as it was written in a snapshot.
func (l *requestLog) restoreRecord(r requestRecord) {
	l.byID.put(r.ID, &r)
	l.bySeq.put(r.Seq, &r)
	l.results += len(r.Results)
}

func (l *requestLog) addResults(id string, results []Result) {
	l.seq++
	l.restoreRecord(requestRecord{ID: id, Seq: l.seq, Results: results})
	for l.byID.len() > dedupeRequests || l.results > dedupeResults {
		seq, oldest := l.bySeq.min()
		l.bySeq.del(seq)
		l.byID.del(oldest.ID)
		l.results -= len(oldest.Results)
		l.floor = seq
	}
}
