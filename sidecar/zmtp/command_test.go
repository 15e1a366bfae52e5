package zmtp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

// TestEncodings compares with bytes libzmq 4.3.5 puts on the wire.
func TestEncodings(t *testing.T) {
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"ready sub", AppendReady(nil, "SUB", ""), "041905" + hex.EncodeToString([]byte("READY")) +
			"0b" + hex.EncodeToString([]byte("Socket-Type")) + "00000003" + hex.EncodeToString([]byte("SUB"))},
		{"ready req", AppendReady(nil, "REQ", "i"), "042705" + hex.EncodeToString([]byte("READY")) +
			"0b" + hex.EncodeToString([]byte("Socket-Type")) + "00000003" + hex.EncodeToString([]byte("REQ")) +
			"08" + hex.EncodeToString([]byte("Identity")) + "00000001" + hex.EncodeToString([]byte("i"))},
		{"subscribe", AppendSubscribe(nil, nil), "040a09" + hex.EncodeToString([]byte("SUBSCRIBE"))},
		{"cancel", AppendCancel(nil, []byte("x")), "040806" + hex.EncodeToString([]byte("CANCELx"))},
		{"ping", AppendPing(nil, 30*time.Second, []byte("c")), "04080450494e47012c63"},
		{"pong", AppendPong(nil, []byte("c")), "0406" + "04504f4e4763"},
		{"error", AppendError(nil, "no"), "0409" + "054552524f52" + "026e6f"},
		{"3.0 subscription", AppendSubscription(nil, []byte("t"), true), "00020174"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestCommandRoundTrips(t *testing.T) {
	ev, _, err := decode(AppendPing(AppendGreeting(nil), 90*time.Second, []byte("0123456789abcdefXX")), 100, true,
		Limits{})
	require.NoError(t, err)
	name, data, err := ParseCommand(ev[1].Body)
	if err != nil || string(name) != CmdPing {
		t.Fatalf("%q, %v", name, err)
	}
	ttl, context, err := ParsePing(data)
	if err != nil || ttl != 90*time.Second || string(context) != "0123456789abcdef" {
		t.Fatalf("%v %q %v", ttl, context, err)
	}
	if ttl, _, _ := ParsePing(AppendPing(nil, 3*time.Hour, nil)[7:]); ttl != 0xffff*100*time.Millisecond {
		t.Fatalf("an overlong ttl became %v", ttl)
	}
}

func TestMalformedCommands(t *testing.T) {
	for _, body := range [][]byte{nil, {0}, {1}, {5, 'R'}} {
		if _, _, err := ParseCommand(body); !errors.Is(err, ErrCommand) {
			t.Errorf("command %q: %v", body, err)
		}
	}
	for _, data := range [][]byte{nil, {0}, make([]byte, 19)} {
		if _, _, err := ParsePing(data); !errors.Is(err, ErrCommand) {
			t.Errorf("ping %q: %v", data, err)
		}
	}
	for _, data := range [][]byte{nil, {2, 'x'}, {0, 'x'}} {
		if _, err := ParseError(data); !errors.Is(err, ErrCommand) {
			t.Errorf("error %q: %v", data, err)
		}
	}
	long := appendProperty(nil, "Identity", string(make([]byte, 256)))
	for _, data := range [][]byte{{0}, {5, 'a'}, {1, 'a', 0, 0, 0}, {1, 'a', 255, 255, 255, 255}, long} {
		if _, err := ParseReady(data); !errors.Is(err, ErrCommand) {
			t.Errorf("ready %.20q: %v", data, err)
		}
	}
}

func TestReadyProperties(t *testing.T) {
	data := appendProperty(nil, "X-Other", "y")
	data = appendProperty(data, "socket-TYPE", "DEALER")
	data = appendProperty(data, "identity", "\x00\xff")
	m, err := ParseReady(data)
	if err != nil || m != (Metadata{SocketType: "DEALER", Identity: "\x00\xff"}) {
		t.Fatalf("%+v, %v", m, err)
	}
}

func TestSubscriptionMessages(t *testing.T) {
	for _, c := range []struct {
		in      string
		topic   string
		add, ok bool
	}{{"\x01abc", "abc", true, true}, {"\x00", "", false, true}, {"", "", false, false}, {"\x02a", "", false, false}} {
		topic, add, ok := ParseSubscription([]byte(c.in))
		if !bytes.Equal(topic, []byte(c.topic)) || add != c.add || ok != c.ok {
			t.Errorf("%q: %q %v %v", c.in, topic, add, ok)
		}
	}
}
