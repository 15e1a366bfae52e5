package tcpframe

import "saltclusterd/sidecar/saltwire"

const (
	keyHead = "\xa4head"
	keyBody = "\xa4body"
)

// AppendReplyHead appends what comes before the body of the reply to a request with this head.
func AppendReplyHead(dst, head []byte) []byte {
	dst = append(append(dst, FirstByte), keyHead...)
	dst = append(dst, head...)
	return append(dst, keyBody...)
}

// publicationHead comes before the length of a publication.
const publicationHead = "\x82" + keyHead + "\x80" + keyBody

// AppendPublication appends the frame of a publication, whose payload is a msgpack map.
func AppendPublication(dst, payload []byte) []byte {
	return saltwire.AppendBin(append(dst, publicationHead...), payload)
}

// PublicationSize is how many bytes AppendPublication appends at most.
func PublicationSize(payload []byte) int { return len(publicationHead) + 5 + len(payload) }
