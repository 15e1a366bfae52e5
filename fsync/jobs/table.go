package jobs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cespare/xxhash/v2"

	"saltclusterd/durable"
)

// The table of jobs in the state directory tells after a start which jobs there were, so that those missing then are
// known to have been removed. It is the magic, a version, how long the master kept jobs, both lists with their lengths
// in front, and the xxhash of all that; a job is its id and the time of its file jid, a removed one its id.
const (
	tableMagic   = "scjt"
	tableVersion = 1
	tableName    = "jobs.table"
	tableMode    = 0o600
	maxTable     = 256 << 20
)

// table is what was known of jobs.
type table struct {
	keep  time.Duration
	there map[string]int64 // time of the file jid
	gone  []string         // removed by the master's cleaning, the oldest first
}

var (
	errTable = errors.New("malformed table of jobs")
	// errNewer: starting without the table would bring back jobs that were removed.
	errNewer = errors.New("it was written by a newer saltclusterd: start that version again")
)

func (t table) encode() []byte {
	out := append([]byte(tableMagic), tableVersion)
	out = binary.AppendVarint(out, int64(t.keep))
	out = binary.AppendUvarint(out, uint64(len(t.there)))
	for jid, at := range t.there {
		out = binary.AppendVarint(appendText(out, jid), at)
	}
	out = binary.AppendUvarint(out, uint64(len(t.gone)))
	for _, jid := range t.gone {
		out = appendText(out, jid)
	}
	return binary.BigEndian.AppendUint64(out, xxhash.Sum64(out))
}

func decodeTable(b []byte) (t table, err error) {
	const head, tail = len(tableMagic) + 1, 8
	if len(b) < head+tail || string(b[:len(tableMagic)]) != tableMagic {
		return t, errTable
	}
	body := b[:len(b)-tail]
	if xxhash.Sum64(body) != binary.BigEndian.Uint64(b[len(body):]) {
		return t, fmt.Errorf("%w: damaged", errTable)
	}
	switch v := b[head-1]; {
	case v > tableVersion:
		return t, fmt.Errorf("%w (%s: version %d, this one reads %d)", errNewer, tableName, v, tableVersion)
	case v != tableVersion:
		return t, fmt.Errorf("%w: version %d", errTable, v)
	}
	r := &reader{b: body[head:]}
	t.keep = time.Duration(r.number())
	t.there = map[string]int64{}
	for n := r.count(maxJobs); n > 0 && !r.bad; n-- {
		jid := r.jid()
		t.there[jid] = r.number()
	}
	for n := r.count(maxGone); n > 0 && !r.bad; n-- {
		t.gone = append(t.gone, r.jid())
	}
	if r.bad || len(r.b) > 0 {
		return table{}, errTable
	}
	return t, nil
}

// loadTable returns an empty table when there is none.
func loadTable(dir string) (table, error) {
	path := filepath.Join(dir, tableName)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return table{}, nil
	}
	if err == nil && info.Size() > maxTable {
		err = fmt.Errorf("%w: %d bytes", errTable, info.Size())
	}
	var raw []byte
	if err == nil {
		raw, err = os.ReadFile(path)
	}
	var t table
	if err == nil {
		t, err = decodeTable(raw)
	}
	if err != nil {
		return table{}, fmt.Errorf("read table of jobs: %w", err)
	}
	return t, nil
}

// save makes the table appear whole or not at all.
func (t table) save(dir string) error {
	if err := durable.Write(filepath.Join(dir, tableName), durable.Options{Mode: tableMode, Prefix: tempPrefix},
		durable.Content(t.encode())); err != nil {
		return fmt.Errorf("save table of jobs: %w", err)
	}
	return nil
}
