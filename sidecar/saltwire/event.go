package saltwire

import "bytes"

// tagEnd parts an event's tag from its data (salt/utils/event.py:TAGEND).
const tagEnd = "\n\n"

// AppendEvent writes an entry of Salt's event bus: tag, two line feeds, data. data is one msgpack map in Disk style,
// with the "_stamp" that SaltEvent.fire_event puts in (UTC, ISO 8601 without zone). How entries are framed on the
// socket differs by version and is the business of sidecar/localmaster.
func AppendEvent(dst []byte, tag string, data []byte) []byte {
	dst = append(dst, tag...)
	dst = append(dst, tagEnd...)
	return append(dst, data...)
}

// SplitEvent parts an entry into tag and data (salt/utils/event.py:SaltEvent.unpack). data aliases entry and is not
// checked. ok is false when the tag end is missing.
func SplitEvent(entry []byte) (tag string, data []byte, ok bool) {
	head, data, ok := bytes.Cut(entry, []byte(tagEnd))
	return string(head), data, ok
}
