package saltvalue

import (
	"github.com/tinylib/msgp/msgp"

	"saltclusterd/sidecar/saltwire"
)

// AppendWire encodes the value at the start of b, as it is on disk, as Salt does for the network after reading it: text
// and bytes in one family (use_bin_type=False), numbers in their shortest form. It is the way back from AppendDisk.
func AppendWire(dst, b []byte) (out, rest []byte, err error) { return appendWire(dst, b, 0) }

func appendWire(dst, b []byte, depth int) (out, rest []byte, err error) {
	var size uint32 // of the container
	n := int64(0)   // values in it
	switch msgp.NextType(b) {
	case msgp.StrType:
		v, rest, err := msgp.ReadStringZC(b)
		return saltwire.AppendRaw(dst, v), rest, asMalformed(err)
	case msgp.BinType:
		v, rest, err := msgp.ReadBytesZC(b)
		return saltwire.AppendRaw(dst, v), rest, asMalformed(err)
	case msgp.MapType:
		size, rest, err = msgp.ReadMapHeaderBytes(b)
		dst, n = saltwire.AppendMapHeader(dst, int(size)), 2*int64(size)
	case msgp.ArrayType:
		size, rest, err = msgp.ReadArrayHeaderBytes(b)
		dst, n = saltwire.AppendArrayHeader(dst, int(size)), int64(size)
	case msgp.InvalidType:
		return dst, b, ErrMalformed
	case msgp.ExtensionType, msgp.TimeType, msgp.Complex64Type, msgp.Complex128Type:
		return appendDatetime(dst, b)
	default:
		return appendScalar(dst, b)
	}
	switch {
	case err != nil:
	case n > int64(len(rest)):
		err = ErrMalformed
	case depth >= maxDepth:
		err = errDeep
	}
	for ; n > 0 && err == nil; n-- {
		dst, rest, err = appendWire(dst, rest, depth+1)
	}
	return dst, rest, asMalformed(err)
}
