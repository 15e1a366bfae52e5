//go:build !amd64 || purego

package fastrsa

// There is no assembly for this processor: New and NewPublic return nil, so that no engine is asked for anything.
var engines []engine

func (shape) multiply(_, _, _ pair, _ []uint64)   { panic("fastrsa: not on this processor") }
func (shape) square(_ pair, _ []uint64, _ uint64) { panic("fastrsa: not on this processor") }
func (shape) choose(_, _ pair, _, _ uint64)       { panic("fastrsa: not on this processor") }

func multiplyOne(_, _, _ []uint64, _ []uint64)   { panic("fastrsa: not on this processor") }
func squareOne(_ []uint64, _ []uint64, _ uint64) { panic("fastrsa: not on this processor") }

func (o *octet) multiply(_, _ *octet, _ *[21 * eight]uint64) { panic("fastrsa: not on this processor") }

func (o *octet) square(_ *[21 * eight]uint64, _ *[2 * len(octet{})]uint64, _ uint64) {
	panic("fastrsa: not on this processor")
}

func (w *fourspace) chosen(_ *octet) { panic("fastrsa: not on this processor") }
