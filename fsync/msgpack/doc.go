// Package msgpack inspects the maps that stock masters keep in files, as far as is needed to copy their bytes into
// another file: where a value begins and ends, and what the keys of a map are. It decodes nothing else.
//
// In: bytes that a master or a peer wrote, which are not trusted. Promises: no recursion, and no memory is allocated on
// the word of a header; the results are slices of the input.
package msgpack
