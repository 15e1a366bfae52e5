//go:build !amd64 || purego

package fastrsa

// There is no assembly for this processor: New returns nil, so that no engine is asked for anything.
var engines []engine

func (engine) multiply(_, _, _ *pair, _ *moduli) { panic("fastrsa: not on this processor") }
func (engine) choose(_ *pair, _ *[1 << windowBits]pair, _, _ uint64) {
	panic("fastrsa: not on this processor")
}
