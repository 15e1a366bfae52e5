package mastertest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// pingBody is {"enc":"clear","load":{"cmd":"ping"},"version":3}: the one command every master answers to anybody.
const pingBody = "\x83\xa3enc\xa5clear\xa4load\x81\xa3cmd\xa4ping\xa7version\x03"

// Ping sends a clear ping to a ROUTER and waits for any answer. It speaks just enough ZMTP for that, so that nothing
// under test is needed to tell whether a master is up.
func Ping(addr string, timeout time.Duration) error {
	c, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	greeting := "\xff" + strings.Repeat("\x00", 8) + "\x7f\x03\x01NULL" + strings.Repeat("\x00", 48)
	ready := "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ"
	request := "\x01\x00\x00" + string(rune(len(pingBody))) + pingBody
	if _, err := io.WriteString(c, greeting+ready); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	if _, err := io.CopyN(io.Discard, c, 64); err != nil {
		return fmt.Errorf("ping: read greeting: %w", err)
	}
	// Not before the greeting came: libzmq closes a connection whose first message arrives along with the greeting.
	if _, err := io.WriteString(c, request); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return readReply(c)
}

// readReply skips command frames and the delimiter and wants one body frame.
func readReply(c io.Reader) error {
	for {
		flags, body, err := readFrame(c)
		if err != nil {
			return fmt.Errorf("ping: read reply: %w", err)
		}
		if flags&0x04 == 0 && flags&0x01 == 0 && len(body) > 0 {
			return nil
		}
	}
}

func readFrame(c io.Reader) (flags byte, body []byte, err error) {
	var h [9]byte
	if _, err := io.ReadFull(c, h[:2]); err != nil {
		return 0, nil, err
	}
	size := uint64(h[1])
	if h[0]&0x02 != 0 {
		if _, err := io.ReadFull(c, h[2:9]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(h[1:9])
	}
	if size > 1<<20 {
		return 0, nil, errors.New("frame too large")
	}
	body = make([]byte, size)
	_, err = io.ReadFull(c, body)
	return h[0], body, err
}
