//go:build !amd64 || purego

package stitched

// There is no assembly for this processor: New returns nil, so that none of these is called.
const supported = false

func both(*schedule, *[aesBlock]byte, *digest, *byte, int) { panic("stitched: not on this processor") }
func encrypt(*schedule, *[aesBlock]byte, *byte, int)       { panic("stitched: not on this processor") }
func hash(*digest, *byte, int)                             { panic("stitched: not on this processor") }
func substitute(uint32) uint32                             { panic("stitched: not on this processor") }
