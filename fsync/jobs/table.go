package jobs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"saltclusterd/fsync/replica"
)

// The table of jobs in the state directory tells after a start which jobs there were, so that those missing then are
// known to have been removed. It is the magic, a version, how long the master kept jobs, both lists with their lengths
// in front, and the xxhash of all that; a job is its id and the time of its file jid, a removed one its id.
const (
	tableMagic   = "scjt"
	tableVersion = 1
	tableName    = "jobs.table"
)

// table is what was known of jobs.
type table struct {
	keep  time.Duration
	there map[string]int64 // time of the file jid
	gone  []string         // removed by the master's cleaning, the oldest first
}

var errTable = errors.New("malformed table of jobs")

func (t table) encode() []byte {
	out := append([]byte(tableMagic), tableVersion)
	out = binary.AppendVarint(out, int64(t.keep))
	out = binary.AppendUvarint(out, uint64(len(t.there)))
	for jid, at := range t.there {
		out = binary.AppendVarint(replica.AppendText(out, jid), at)
	}
	out = binary.AppendUvarint(out, uint64(len(t.gone)))
	for _, jid := range t.gone {
		out = replica.AppendText(out, jid)
	}
	return binary.BigEndian.AppendUint64(out, xxhash.Sum64(out))
}

func decodeTable(b []byte) (t table, err error) {
	const head, tail = len(tableMagic) + 1, 8
	if len(b) < head+tail || string(b[:len(tableMagic)]) != tableMagic {
		return t, errTable
	}
	// Starting without the table would bring back jobs that were removed. The version comes first: what stands behind it,
	// its sum included, may have another form.
	if err := replica.CheckVersion(tableName, int(b[head-1]), tableVersion); err != nil {
		return t, err
	}
	body := b[:len(b)-tail]
	if xxhash.Sum64(body) != binary.BigEndian.Uint64(b[len(body):]) {
		return t, fmt.Errorf("%w: damaged", errTable)
	}
	r := format.Read(body[head:])
	t.keep = time.Duration(r.Varint())
	t.there = map[string]int64{}
	for n := r.Count(maxJobs); n > 0 && !r.Bad(); n-- {
		jid := readJID(r)
		t.there[jid] = r.Varint()
	}
	for n := r.Count(maxGone); n > 0 && !r.Bad(); n-- {
		t.gone = append(t.gone, readJID(r))
	}
	if r.End() != nil {
		return table{}, errTable
	}
	return t, nil
}
