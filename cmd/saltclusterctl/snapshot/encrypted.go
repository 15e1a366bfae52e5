package snapshot

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"

	"saltclusterd/consensus/archive"
)

// ageMagic begins every file that age has encrypted (https://age-encryption.org/v1).
const ageMagic = "age-encryption.org/v1\n"

// maxWorkFactor bounds what a file may ask for before its passphrase is known: 1 GiB and some seconds.
const maxWorkFactor = 20

var (
	errNeedsPassphrase = errors.New("the snapshot is encrypted")
	errPassphrase      = errors.New("the passphrase does not open the snapshot, or it is damaged")
)

// writeSnapshot writes a snapshot, encrypted by age when there is a passphrase.
func writeSnapshot(w io.Writer, h archive.Header, c archive.Content, passphrase string, workFactor int) error {
	if passphrase == "" {
		return archive.Write(w, h, c)
	}
	to, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return fmt.Errorf("encrypt snapshot: %w", err)
	}
	to.SetWorkFactor(workFactor)
	sealed, err := age.Encrypt(w, to)
	if err != nil {
		return fmt.Errorf("encrypt snapshot: %w", err)
	}
	if err := archive.Write(sealed, h, c); err != nil {
		return err
	}
	if err := sealed.Close(); err != nil {
		return fmt.Errorf("encrypt snapshot: %w", err)
	}
	return nil
}

// decryptSnapshot returns the plain bytes of a snapshot and whether it is encrypted.
func decryptSnapshot(r io.Reader, passphrase string) (plain io.Reader, encrypted bool, err error) {
	in := bufio.NewReader(r)
	if front, _ := in.Peek(len(ageMagic)); string(front) != ageMagic {
		return in, false, nil // the archive reports what it is instead
	}
	if passphrase == "" {
		return nil, true, errNeedsPassphrase
	}
	from, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, true, fmt.Errorf("decrypt snapshot: %w", err)
	}
	from.SetMaxWorkFactor(maxWorkFactor)
	if plain, err = age.Decrypt(in, from); err != nil {
		return nil, true, errPassphrase
	}
	return plain, true, nil
}
