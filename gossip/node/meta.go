package node

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// MaxMeta is the greatest length of an encoded Meta in bytes; it is memberlist's MetaMaxSize.
const MaxMeta = 512

// maxText bounds each text field so that a Meta always fits.
const maxText = 64

const (
	metaMagic   = 's'
	metaVersion = 1
)

// Record numbers of the encoding. Append only: a number is never used again for something else.
const (
	recBuild     = 1
	recSalt      = 2
	recProto     = 3
	recFlags     = 4
	recLoad      = 5
	recWork      = 6
	recLevel     = 7
	recTolerance = 8
)

const (
	flagReady = 1 << iota
	flagMasterUp
	flagDraining
	flagWitness
	flagReturns
	flagMines
	flagRoots
	flagPillarCache
)

// ErrMeta is wrapped by every error ParseMeta returns.
var ErrMeta = errors.New("node metadata")

// Meta is what a live node tells the others about itself by gossip: hints for routing and for the operator.
type Meta struct {
	Build       string // version of saltclusterd, at most 64 bytes
	Salt        string // version of the stock master beside it, such as "3008.3"; empty: not known (yet)
	Proto       uint16 // newest peer RPC version spoken
	Ready       bool   // serves minions: caught up, ports open
	MasterUp    bool   // its stock master answers
	Draining    bool   // hands its minions over, give it no new work
	Witness     bool   // has no stock master at all
	Returns     bool   // takes returns of minions without its master
	Mines       bool   // takes mines that other masters have written
	Roots       bool   // understands what consensus says about file and pillar roots
	PillarCache bool   // its stock master answers minions from a cache of pillars (pillar_cache)
	// Tolerance is how long it waits for a heartbeat of the leader of consensus, in milliseconds; zero: that is not said.
	Tolerance   uint16
	Level       uint16 // of consensus commands it understands, see consensus/state
	Subscribers uint32 // minions connected to its publish port
	Work        uint32 // requests its stock master is working on, roughly
}

// Append appends the encoded form to dst: magic, version, then records (number, length, value). Texts beyond 64 bytes
// are cut.
func (m Meta) Append(dst []byte) []byte {
	dst = append(dst, metaMagic, metaVersion)
	dst = appendRecord(dst, recBuild, []byte(m.Build[:min(len(m.Build), maxText)]))
	dst = appendRecord(dst, recSalt, []byte(m.Salt[:min(len(m.Salt), maxText)]))
	dst = appendRecord(dst, recProto, binary.BigEndian.AppendUint16(nil, m.Proto))
	dst = appendRecord(dst, recFlags, []byte{m.flagByte()})
	dst = appendRecord(dst, recLoad, binary.BigEndian.AppendUint32(nil, m.Subscribers))
	dst = appendRecord(dst, recWork, binary.BigEndian.AppendUint32(nil, m.Work))
	dst = appendRecord(dst, recLevel, binary.BigEndian.AppendUint16(nil, m.Level))
	return appendRecord(dst, recTolerance, binary.BigEndian.AppendUint16(nil, m.Tolerance))
}

// ParseMeta reads what Append wrote. Unknown records of a known version are skipped, so that a newer node can say more.
func ParseMeta(b []byte) (Meta, error) {
	var m Meta
	switch {
	case len(b) > MaxMeta:
		return m, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrMeta, len(b), MaxMeta)
	case len(b) < 2 || b[0] != metaMagic:
		return m, fmt.Errorf("%w: not metadata of saltclusterd", ErrMeta)
	case b[1] != metaVersion:
		return m, fmt.Errorf("%w: version %d is not supported, only %d is", ErrMeta, b[1], metaVersion)
	}
	for b = b[2:]; len(b) > 0; {
		if len(b) < 2 || len(b)-2 < int(b[1]) {
			return Meta{}, fmt.Errorf("%w: a record is cut off", ErrMeta)
		}
		number, value := b[0], b[2:2+int(b[1])]
		b = b[2+len(value):]
		if err := m.setRecord(number, value); err != nil {
			return Meta{}, err
		}
	}
	return m, nil
}

func (m *Meta) setRecord(number byte, value []byte) error {
	want := map[byte]int{recProto: 2, recFlags: 1, recLoad: 4, recWork: 4, recLevel: 2, recTolerance: 2}
	if n, fixed := want[number]; fixed && len(value) != n {
		return fmt.Errorf("%w: record %d has %d bytes instead of %d", ErrMeta, number, len(value), n)
	}
	switch number {
	case recBuild, recSalt:
		if len(value) > maxText || !IsPrintable(value) {
			return fmt.Errorf("%w: record %d is not a short printable text", ErrMeta, number)
		}
		if number == recBuild {
			m.Build = string(value)
		} else {
			m.Salt = string(value)
		}
	case recProto:
		m.Proto = binary.BigEndian.Uint16(value)
	case recFlags:
		m.setFlags(value[0])
	case recLoad:
		m.Subscribers = binary.BigEndian.Uint32(value)
	case recWork:
		m.Work = binary.BigEndian.Uint32(value)
	case recLevel:
		m.Level = binary.BigEndian.Uint16(value)
	case recTolerance:
		m.Tolerance = binary.BigEndian.Uint16(value)
	}
	return nil
}

func (m Meta) flagByte() byte {
	var f byte
	for bit, on := range map[byte]bool{
		flagReady: m.Ready, flagMasterUp: m.MasterUp, flagDraining: m.Draining, flagWitness: m.Witness,
		flagReturns: m.Returns, flagMines: m.Mines, flagRoots: m.Roots, flagPillarCache: m.PillarCache,
	} {
		if on {
			f |= bit
		}
	}
	return f
}

func (m *Meta) setFlags(f byte) {
	m.Ready, m.MasterUp = f&flagReady != 0, f&flagMasterUp != 0
	m.Draining, m.Witness = f&flagDraining != 0, f&flagWitness != 0
	m.Returns, m.Mines = f&flagReturns != 0, f&flagMines != 0
	m.Roots, m.PillarCache = f&flagRoots != 0, f&flagPillarCache != 0
}

func appendRecord(dst []byte, number byte, value []byte) []byte {
	return append(append(dst, number, byte(len(value))), value...)
}

// IsPrintable says whether b is printable ASCII. It keeps control characters and the like out of logs and tables.
func IsPrintable(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}
