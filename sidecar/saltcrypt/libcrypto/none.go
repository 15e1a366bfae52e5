//go:build !(linux && (amd64 || arm64)) || nolibcrypto

package libcrypto

import "fmt"

type library struct{}

func load() (*library, error) {
	return nil, fmt.Errorf("%w: this program was built without it", ErrUnavailable)
}

func newEngine([]byte) (engine, error) {
	_, err := load()
	return nil, err
}
