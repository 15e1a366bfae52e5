// Package saltvalue reads and writes values as a stock salt-master holds them, without turning them into Go values: a
// load from the network becomes raw msgpack as Salt writes it to disk, byte for byte, and back.
//
// In: msgpack from the network (use_bin_type=False), where text and bytes are one family, or from disk
// (use_bin_type=True). Out: the other form, or the entries of a map or list, each still raw. The model is
// salt/payload.py and salt/transport/frame.py:decode_embedded_strs, of 3006, 3007 and 3008.
//
// Promises: input that Python would understand differently from this package is refused with NeedsPython, input that no
// Salt can read with ErrMalformed; the cost and the size of the output are bounded by the size of the input, except
// that floats of 4 bytes become 8.
//
// Raw is a value's msgpack as on disk.
package saltvalue
