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
)

// The note is the plan of a switch that consists of one exchange, in a file beside the database. Writing it does not
// wait for the disk: when the process is killed the file is there, and what an operator has saved in the instant of the
// exchange is given back or put aside. After a power failure it may be damaged or older than the base: then it is not
// believed, and need not be.

const (
	noteName  = "switch"
	noteMagic = "saltclusterd switch 1\n"
	maxNote   = 16 << 20
)

// writeNote notes a switch that is about to begin.
func writeNote(dir string, j *journal) error {
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(j); err != nil {
		return err
	}
	sum := sha256.Sum256(body.Bytes())
	raw := append([]byte(noteMagic), sum[:]...)
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
	return parseNote(raw), nil
}

func parseNote(raw []byte) *journal {
	body, ok := bytes.CutPrefix(raw, []byte(noteMagic))
	if !ok || len(body) < sha256.Size {
		return nil
	}
	sum, body := [sha256.Size]byte(body[:sha256.Size]), body[sha256.Size:]
	var j journal
	if sha256.Sum256(body) != sum || gob.NewDecoder(bytes.NewReader(body)).Decode(&j) != nil {
		return nil
	}
	return &j
}
