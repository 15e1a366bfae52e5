//go:build !amd64 || purego

package ifma

// There is no assembly for this processor: New returns nil, so that neither is called.
const supported = false

func multiply(_, _, _, _ *pair, _ *[2]uint64)               { panic("ifma: not on this processor") }
func choose(_ *pair, _ *[1 << windowBits]pair, _, _ uint64) { panic("ifma: not on this processor") }
