package share

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"saltclusterd/gossip/node"
)

const (
	tokenSize = 26 // of rand.Text
	fileMode  = 0o600
)

// lookAtShare writes this node's token and reads those of others. Each system call may take as long as the mount wants.
func lookAtShare(dir string, self node.ID, token string, others []node.ID) (map[node.ID]string, error) {
	if err := writeToken(tokenPath(dir, self), token); err != nil {
		return nil, err
	}
	files := make(map[node.ID]string, len(others))
	for _, id := range others {
		text, err := readToken(tokenPath(dir, id))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		files[id] = text
	}
	return files, nil
}

// writeToken overwrites in place: a client of a network file system may show a file that was replaced for a minute.
func writeToken(name, token string) (err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, fileMode)
	if err != nil {
		return fmt.Errorf("write to the share: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteAt([]byte(token), 0); err != nil {
		return fmt.Errorf("write to the share: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write to the share: %w", err)
	}
	return nil
}

func readToken(name string) (string, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("read the share: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, tokenSize))
	if err != nil {
		return "", fmt.Errorf("read the share: %w", err)
	}
	return string(b), nil
}

// Here says whether a directory has the file that a node has written to what it shares: then that is the same
// directory.
func Here(dir string, id node.ID, token string) bool {
	text, err := readToken(tokenPath(dir, id))
	return err == nil && token != "" && text == token
}
