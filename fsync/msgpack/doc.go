// Package msgpack looks into the maps that stock masters keep in files, as far as it takes to put the same bytes into
// another file: where a value begins and ends, and what the keys of a map are. It decodes nothing else.
//
// In comes what a master or a peer wrote; it may be anything. Promises: no recursion, no memory by what a header says,
// and what is passed on are slices of what came in.
package msgpack
