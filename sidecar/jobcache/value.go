package jobcache

import "saltclusterd/sidecar/saltvalue"

// NeedsPython is the error for what only the master's own code can do right.
type NeedsPython = saltvalue.NeedsPython

// ErrMalformed means that a load is not one msgpack map.
var ErrMalformed = saltvalue.ErrMalformed

func needs(format string, args ...any) error { return saltvalue.Needs(format, args...) }

// fields is a Python dict.
type fields = saltvalue.Fields

var rawFalse, rawNil = []byte{0xc2}, []byte{0xc0}
