package peer

import (
	"fmt"
	"io"
	"os"
)

// readLimited reads a small file of ours.
func readLimited(path string) ([]byte, error) { return readUpTo(path, maxIdentityFile) }

func readUpTo(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return data, nil
}

// checkMode refuses a private key that others can read.
func checkMode(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("check node key: %w", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is accessible to others (mode %04o); run chmod 600 on it", path, st.Mode().Perm())
	}
	return nil
}
