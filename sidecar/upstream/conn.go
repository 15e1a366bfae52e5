package upstream

import (
	"errors"
	"fmt"
	"time"

	"saltclusterd/sidecar/zmtp"
)

// directWrite is the largest request written by the goroutine that has it: with one request in flight the socket
// buffer is empty, so that such a write does not block. Larger ones get a goroutine.
const directWrite = 64 << 10

var errUnexpected = errors.New("upstream: the master sent an unexpected message")

// conn is one connection. Its fields below the line are guarded by ReqClient.mu.
type conn struct {
	c     *ReqClient
	z     *zmtp.Client
	epoch uint64

	call      *call     // in flight, nil when idle or draining
	owed      bool      // a reply is outstanding
	long      bool      // to a call that may take long, see isLong
	asked     time.Time // since when
	idleSince time.Time // when it was put on the idle list
	drain     *time.Timer
	from      string // whose call the master works on, when
	counted   bool   // that counts for him
	kept      bool   // draining beyond DrainTimeout
	gone      bool   // taken out of the pool
}

var delimiter = []byte{}

func (cn *conn) close() { _ = cn.z.Close() }

// job is a request that was given to a connection and has to be written. It is a copy, because the call may be given
// up, and its object used again, before that.
type job struct {
	cn   *conn // nil: nothing to do
	body []byte
}

// sendRequest writes the request; an error shows at the connection's reader too, which does the rest.
func (j job) sendRequest() {
	switch {
	case j.cn == nil:
	case len(j.body) <= directWrite:
		j.writeRequest()
	default:
		go func() {
			defer j.cn.c.wg.Done() // assign has counted it
			j.writeRequest()
		}()
	}
}

func (j job) writeRequest() {
	if err := j.cn.z.WriteMessage(delimiter, j.body); err != nil {
		j.cn.close()
	}
}

// readReplies receives replies until the connection ends.
func (cn *conn) readReplies() {
	for {
		parts, err := cn.z.ReadMessage()
		if err == nil && (len(parts) != 2 || len(parts[0]) != 0) {
			err = fmt.Errorf("%w: %d parts", errUnexpected, len(parts))
		}
		if err == nil {
			err = cn.c.handleReply(cn, parts[1])
		}
		if err != nil {
			cn.close()
			cn.c.handleLost(cn, err)
			return
		}
	}
}
