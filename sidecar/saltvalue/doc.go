// Package saltvalue reads and writes values as a stock salt-master holds them, without making them values of Go: a load
// as it came over the network becomes raw msgpack as Salt writes it to disk, byte for byte, and back.
//
// In: msgpack of the network (use_bin_type=False), where text and bytes are one family, or of the disk
// (use_bin_type=True). Out: the other one, or the entries of a map and of a list, each still raw. The model is
// salt/payload.py and salt/transport/frame.py:decode_embedded_strs, of 3006, 3007 and 3008.
//
// Promises: what Python would understand in another way than this package is refused with NeedsPython, what no Salt can
// read with ErrMalformed; the cost is bounded by the size of what comes in, and so is what comes out, but for floats of
// 4 bytes that become 8.
//
// Raw is a value's msgpack as on disk.
package saltvalue
