package gossip

import (
	"bufio"
	"bytes"
	"compress/lzw"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

const testLabel = "6a9c7bde-uuid"

// sealAs encrypts as memberlist does; version 0 expects its padding in b.
func sealAs(t testing.TB, version byte, b []byte, aad string) []byte {
	t.Helper()
	block, err := aes.NewCipher(key(1))
	require.NoError(t, err)
	gcm, err := cipher.NewGCM(block)
	require.NoError(t, err)
	nonce := make([]byte, gcm.NonceSize())
	return gcm.Seal(append([]byte{version}, nonce...), nonce, b, []byte(aad))
}

func labelled(b []byte) []byte {
	return append(append([]byte{msgLabel, byte(len(testLabel))}, testLabel...), b...)
}

func packetOf(t testing.TB, version byte, b []byte) []byte {
	return labelled(sealAs(t, version, b, testLabel))
}

// streamOf is the message of a stream; size is what it says of its length, -1: the truth.
func streamOf(t testing.TB, version byte, b []byte, size int) []byte {
	if size < 0 {
		size = len(b) + 1 + sealNonce + sealTag
	}
	head := binary.BigEndian.AppendUint32([]byte{msgEncrypt}, uint32(size))
	return labelled(append(head, sealAs(t, version, b, string(head)+testLabel)...))
}

func said(t testing.TB, kind byte, v any) []byte {
	t.Helper()
	b := bytes.NewBuffer([]byte{kind})
	require.NoError(t, codec.NewEncoder(b, &codec.MsgpackHandle{}).Encode(v))
	return b.Bytes()
}

func packed(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := lzw.NewWriter(&out, lzw.LSB, 8)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, w.Close())
	return said(t, msgCompress, map[string]any{"Algo": 0, "Buf": out.Bytes()})
}

func together(parts ...[]byte) []byte {
	b := []byte{msgCompound, byte(len(parts))}
	for _, p := range parts {
		b = binary.BigEndian.AppendUint16(b, uint16(len(p)))
	}
	return append(b, bytes.Join(parts, nil)...)
}

// What ends the process, or takes memory as the sender likes, without vetter.
func hostileContents(t testing.TB) map[string][]byte {
	return map[string][]byte{
		"nothing":               {},
		"nothing, packed":       packed(t, nil),
		"a bomb":                packed(t, make([]byte, maxUnpacked+1)),
		"packed twice":          packed(t, packed(t, []byte{0})),
		"packed in several":     together(packed(t, []byte{0})),
		"several in several":    together(together([]byte{0})),
		"several, cut off":      {msgCompound, 255},
		"not packed, though":    {msgCompress, 0xc1},
		"many nodes":            said(t, msgPushPull, map[string]any{"Nodes": 1 << 20, "UserStateLen": 0}),
		"fewer nodes than 0":    said(t, msgPushPull, map[string]any{"Nodes": -1}),
		"much besides":          said(t, msgPushPull, map[string]any{"Nodes": 0, "UserStateLen": 20 << 20}),
		"fewer nodes than said": said(t, msgPushPull, map[string]any{"Nodes": 3}),
		"the last word": append(said(t, msgPushPull, map[string]any{"Nodes": 1}),
			said(t, 0, map[string]any{"Name": "c", "Incarnation": uint32(math.MaxUint32), "State": 2})[1:]...),
		"he is dead, for good": said(t, msgDead, map[string]any{"Node": "c", "Incarnation": uint32(math.MaxUint32)}),
		"among others": together([]byte{0},
			said(t, msgAlive, map[string]any{"Node": "c", "Incarnation": uint32(math.MaxUint32)})),
		"half a claim":         {msgSuspect, 0x81},
		"a message to the app": said(t, msgUser, map[string]any{"UserMsgLen": 20 << 20}),
	}
}

// onlyStreams are no packets, which memberlist refuses by itself.
var onlyStreams = map[string]bool{
	"many nodes": true, "fewer nodes than 0": true, "fewer nodes than said": true, "the last word": true,
	"much besides": true, "a message to the app": true,
}

// onlyPackets: a stream has one message.
var onlyPackets = map[string]bool{
	"packed in several": true, "several in several": true, "several, cut off": true, "he is dead, for good": true,
	"among others": true, "half a claim": true,
}

func TestHostileMember(t *testing.T) {
	w := newWorld(t)
	a, thief, c := w.start("a"), w.start("b"), w.start("c")
	for _, n := range []*testNode{a, thief, c} {
		n.mustSee("a=alive b=alive c=alive")
	}
	to := netip.MustParseAddrPort(a.addr)
	send := func(p []byte) {
		t.Helper()
		if _, err := thief.transport.udp.WriteToUDPAddrPort(p, to); err != nil {
			t.Fatal(err)
		}
	}
	stream := func(msg []byte) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		defer cancel()
		s, err := thief.port.Dial(ctx, "a", peer.ProtoGossip)
		require.NoError(t, err)
		_ = s.SetDeadline(time.Now().Add(testTimeout))
		_, _ = s.Write(msg)
		_, _ = s.Read(make([]byte, 1<<16))
		_ = peer.Cut(s)
	}
	hostile := func() float64 { return testutil.ToFloat64(a.m.dropped.WithLabelValues("hostile")) }
	before := hostile()
	want := 0
	for name, b := range hostileContents(t) {
		if !onlyStreams[name] {
			send(packetOf(t, 1, b))
			want++
		}
		if !onlyPackets[name] {
			stream(streamOf(t, 1, b, -1))
			want++
		}
	}
	for _, padding := range []string{"", "\xff", "\x00\xff"} { // longer than the message, at the end of it
		send(packetOf(t, 0, append(make([]byte, 16), padding...)))
		stream(streamOf(t, 0, append(make([]byte, 16), padding...), -1))
		want += 2
	}
	stream(streamOf(t, 1, nil, maxStream+1))
	stream(labelled([]byte{msgPushPull, 0x80}))
	want += 2
	patience.WaitSettled(t, func() string {
		if got := hostile() - before; got < float64(want) {
			return "not all was refused"
		}
		return ""
	})
	if a.list == nil || !a.Alive("a") {
		t.Error("a is not well")
	}

	// Claims which are well-formed, and lies: in the name of nobody, of a path, of a member elsewhere, with what is no
	// metadata.
	ip := to.Addr().AsSlice()
	alive := func(name string, addr []byte, meta []byte) []byte {
		return said(t, 4, map[string]any{"Incarnation": 9, "Node": name, "Addr": addr, "Port": to.Port(), "Meta": meta,
			"Vsn": []byte{1, 5, 2, 0, 0, 0}})
	}
	good := node.Meta{Salt: "1"}.Append(nil)
	for _, m := range [][]byte{
		alive("nobody", ip, good), alive("../../etc", ip, good), alive(strings.Repeat("x", 1000), ip, good),
		alive("c", ip, good), alive("c", nil, good),
		alive("c", bytes.Repeat(ip, 5), nil), alive("b", ip, bytes.Repeat([]byte{'m'}, 30_000)),
		said(t, 4, map[string]any{"Node": "c", "Vsn": []byte{1}}),
		{4}, {3, 0xc1}, {5, 0x91, 0x91}, {2, 0xff}, {200},
	} {
		send(packetOf(t, 1, m))
	}
	for _, n := range []*testNode{a, c} {
		n.mustSee("a=alive b=alive c=alive")
	}
	for _, m := range a.list.Members() {
		if m.Name != "a" && m.Name != "b" && m.Name != "c" {
			t.Errorf("a knows %q", m.Name)
		}
	}
}

// A member can say what he likes of another one, also in the last word that is believed at the moment. It ends with
// him.
func TestSlanderEnds(t *testing.T) {
	w := newWorld(t)
	a, thief, c := w.start("a"), w.start("b"), w.start("c")
	for _, n := range []*testNode{a, thief, c} {
		n.mustSee("a=alive b=alive c=alive")
	}
	say := func(kind byte, more map[string]any) {
		t.Helper()
		more["Incarnation"], more["Node"] = maxIncarnation(time.Now()), "c"
		if _, err := thief.transport.udp.WriteToUDPAddrPort(packetOf(t, 1, said(t, kind, more)),
			netip.MustParseAddrPort(a.addr)); err != nil {
			t.Fatal(err)
		}
	}
	at := netip.MustParseAddrPort(c.addr)
	say(msgAlive, map[string]any{
		"Addr": at.Addr().AsSlice(), "Port": at.Port(), "Meta": node.Meta{Salt: "forged"}.Append(nil),
		"Vsn": []byte{1, 5, 2, 0, 0, 0},
	})
	salt := func(want string) func() string {
		return func() string {
			if m, _ := a.Member("c"); m.Meta.Salt != want || m.State != Alive {
				return fmt.Sprintf("a knows c as %+v", m)
			}
			return ""
		}
	}
	patience.WaitSettled(t, salt("forged"))
	patience.WaitSettled(t, salt("3008.3")) // c has heard of it, and contradicts
	say(msgDead, map[string]any{"From": "b"})
	w.remove("b")
	thief.kill()
	a.mustSee("a=alive c=alive")
	c.mustSee("a=alive c=alive")
	patience.WaitSettled(t, salt("3008.3"))
	c.meta.Store(&node.Meta{Salt: "news"})
	c.UpdateMeta()
	patience.WaitSettled(t, salt("news"))
}

func TestMaxIncarnation(t *testing.T) {
	for at, want := range map[time.Time]int64{
		{}: someIncarnations, incarnationsSince: someIncarnations,
		incarnationsSince.Add(time.Minute):   someIncarnations + 60*incarnationRate,
		incarnationsSince.AddDate(100, 0, 0): math.MaxUint32,
	} {
		if got := maxIncarnation(at); got != want {
			t.Errorf("%s: %d, want %d", at, got, want)
		}
	}
}

// FuzzVet: what passes is nothing that memberlist falls over, and what is refused is refused at once.
func FuzzVet(f *testing.F) {
	v := vetter{testLabel, func() [][]byte { return [][]byte{key(1)} }, time.Now}
	for _, b := range hostileContents(f) {
		if len(b) < 4096 {
			f.Add(b, false)
			f.Add(b, true)
		}
	}
	f.Add(said(f, 4, map[string]any{"Node": "c"}), false)
	f.Add(together([]byte{0}, []byte{1, 2}), false)
	f.Fuzz(func(t *testing.T, b []byte, stream bool) {
		if err := v.checkMessage(b, stream); err == nil && len(b) == 0 {
			t.Fatal("nothing passes")
		}
		_ = v.checkPacket(b)
		_ = v.checkPacket(labelled(b))
		if read, err := v.readStream(bufioOf(b)); err == nil && !bytes.HasPrefix(b, read) {
			t.Fatalf("%x became %x", b, read)
		}
		whole := streamOf(t, 1, b, -1)
		read, err := v.readStream(bufioOf(append(bytes.Clone(whole), "more"...)))
		if err == nil && !bytes.Equal(read, whole) {
			t.Fatalf("%x became %x", whole, read)
		}
		if passes := v.checkMessage(b, true) == nil; passes != (err == nil) {
			t.Fatalf("%v, in a stream %v", passes, err)
		}
	})
}

func bufioOf(b []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(b)) }
