package roots

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// The note is the plan of a switch that consists of one exchange, in a file beside the database. Writing it does not
// wait for the disk: when the process is killed the file is there, and what an operator has saved in the instant of the
// exchange is given back or put aside. After a power failure it may be damaged or older than the base: then it is not
// believed, and need not be.

const (
	noteName    = "switch"
	noteMagic   = "saltclusterd switch "
	noteVersion = 1 // in decimal behind noteMagic, in a line
	maxNote     = 16 << 20
)

// writeNote notes a switch that is about to begin.
func writeNote(dir string, j *journal) error {
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(j); err != nil {
		return err
	}
	sum := sha256.Sum256(body.Bytes())
	raw := append(fmt.Appendf(nil, "%s%d\n", noteMagic, noteVersion), sum[:]...)
	return os.WriteFile(filepath.Join(dir, noteName), append(raw, body.Bytes()...), 0o600)
}

// removeNote forgets a switch that has ended.
func removeNote(dir string) error {
	if err := os.Remove(filepath.Join(dir, noteName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readNote returns the switch that was noted; nil when there is none, or it cannot be believed.
func readNote(dir string) (*journal, error) {
	f, err := os.Open(filepath.Join(dir, noteName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the plan of a switch: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxNote))
	if err != nil {
		return nil, fmt.Errorf("read the plan of a switch: %w", err)
	}
	return parseNote(raw)
}

// errNewerNote refuses the note of a later version: what an operator has saved in the instant of that switch is known
// only to who can read it.
var errNewerNote = errors.New("a switch begun by a newer saltclusterd was interrupted: start that version again")

func parseNote(raw []byte) (*journal, error) {
	rest, ok := bytes.CutPrefix(raw, []byte(noteMagic))
	line, body, whole := bytes.Cut(rest, []byte("\n"))
	version, err := strconv.ParseUint(string(line), 10, 16)
	switch {
	case !ok || !whole || err != nil:
		return nil, nil
	case version > noteVersion:
		return nil, fmt.Errorf("%w (%s: version %d, this one reads %d)", errNewerNote, noteName, version, noteVersion)
	case version != noteVersion || len(body) < sha256.Size:
		return nil, nil
	}
	sum, body := [sha256.Size]byte(body[:sha256.Size]), body[sha256.Size:]
	var j journal
	if sha256.Sum256(body) != sum || gob.NewDecoder(bytes.NewReader(body)).Decode(&j) != nil {
		return nil, nil
	}
	return &j, nil
}
