//go:build !(libcrypto && cgo && linux)

package libcrypto

func load([]byte) (engine, error) { return nil, ErrNotBuilt }
