package saltwire

import "strconv"

const (
	maxCmd  = 64
	maxJID  = 128
	maxName = 1024 // fun, tag, path, user
	maxTok  = 1024 // X9.31 output of an 8192-bit key
)

// Peek is what routing and the guard read from a decrypted load. Byte slices alias it, strings are copies.
type Peek struct {
	Cmd      string
	ID       string
	Nonce    string
	JID      string // of _syndic_return: that of its first load
	MasterID string // echoed from the publication; of _syndic_return: that of its first load
	Fun      string // of a job with several functions the first
	Tag      string // of _minion_event in its single form
	Path     string // of _file_recv; components joined with "/", as much as fits
	TS       int64  // unix seconds
	HasTS    bool
	HasTok   bool
	Tok      []byte // X9.31 signature of the word "salt"
	HasSig   bool   // the minion signed the load: not a byte of it may change
	Mixed    bool   // a _syndic_return whose loads differ in jid or master_id
	// "minions", "missing" or "error" stands in it: in an event of a job they tell who waits for it whom it is for
	Whom   bool
	NoJID  bool   // "jid" is a list or a map
	Peer   bool   // "__peer_id" stands in it, with which masters of a native cluster mark what comes from each other
	Events []byte // raw msgpack of the list of a _minion_event; nil when absent
	Loads  []byte // raw msgpack of the list of a _syndic_return; nil when absent
	Raw    Raw
}

// Raw is fields that only rules look at (sidecar/wall). Each may stand once only.
type Raw struct {
	Path, Prefix            Value // file requests; Path: of a _file_recv the list of components
	SaltEnv, Env, PillarEnv Value
	Ext                     Value // _pillar: on-demand external pillars
	Pretag                  Value // _minion_event: what a syndic has put before each tag
	Return                  Value // _return, and _syndic_return of old syndics
	ResourceID              Value // _return of a resource that the minion manages
	Schedule                Value // _return of a minion's own schedule
	FSBackend, Back         Value // file requests: backends of the file server
	Resources, Grains       Value // _register_resources: what the minion manages, and the grains of it
	Opts                    Value // _master_tops: the minion's configuration
	Fun, Retcode            Value // _return
	Timeout, Tmo            Value // minion_publish: seconds that it waits for returns
	TgtType, ExprForm       Value // _mine_get: how minions are looked for, and how old minions say that
}

// Indexes of fields for seen.
const (
	peekCmd uint = iota
	peekID
	peekNonce
	peekJID
	peekMasterID
	peekFun
	peekTag
	peekPath
	peekTS
	peekTok
	peekSig
	peekEvents
	peekLoad
	peekRaw // and those after it
)

// PeekLoad walks a load: plain is one msgpack map and nothing after it. Fields it knows may stand once only and must
// have their type; all others are checked to be msgpack nested no deeper than a stock master reads (900) and passed
// over. A nonce is not part of it: requests carry theirs as a field. Errors: *Refused.
func PeekLoad(plain []byte) (Peek, error) {
	it, err := openMap(plain, sealedRules)
	if err != nil {
		return Peek{}, err
	}
	var p Peek
	var s seen
	for {
		key, value, ok, err := it.nextPair()
		if err != nil {
			return Peek{}, err
		}
		if !ok {
			break
		}
		if err := p.setField(&s, key, value); err != nil {
			return Peek{}, err
		}
	}
	if p.Cmd == "" {
		return Peek{}, refuse(ReasonMissing, "cmd")
	}
	if p.Cmd == "_syndic_return" && p.Loads != nil {
		return p, p.readSyndic()
	}
	return p, nil
}

func (p *Peek) setField(s *seen, key, value []byte) error {
	switch string(key) {
	case "cmd":
		return p.setCmd(s, value)
	case "id":
		return s.setText(&p.ID, peekID, value, maxID, "id")
	case "nonce":
		return s.setText(&p.Nonce, peekNonce, value, maxNonce, "nonce")
	case "jid":
		p.NoJID = Value(value).Container()
		return s.setJID(&p.JID, peekJID, value)
	case "master_id":
		return s.setMaster(&p.MasterID, peekMasterID, value)
	case "fun":
		p.Raw.Fun = value
		return s.setFun(&p.Fun, peekFun, value)
	case "tag":
		if _, ok := Bytes(value); !ok { // no event has such a tag: masters raise
			return s.checkFirst(peekTag, "tag")
		}
		return s.setText(&p.Tag, peekTag, value, maxName, "tag")
	case "path":
		p.Raw.Path = value
		return p.setPath(s, value)
	case "ts":
		return p.setTS(s, value)
	case "tok":
		return p.setTok(s, value)
	case "sig":
		p.HasSig = true
		return s.checkFirst(peekSig, "sig")
	case "events":
		p.Events = asArray(value)
		return s.checkFirst(peekEvents, "events")
	case "load":
		p.Loads = asArray(value)
		return s.checkFirst(peekLoad, "load")
	case "minions", "missing", "error":
		p.Whom = true
		return nil
	case "__peer_id":
		p.Peer = true
		return nil
	}
	return p.Raw.setField(s, key, value)
}

func (r *Raw) setField(s *seen, key, value []byte) error {
	var dst *Value
	index := peekRaw
	switch string(key) {
	case "prefix":
		dst = &r.Prefix
	case "saltenv":
		dst, index = &r.SaltEnv, peekRaw+1
	case "env":
		dst, index = &r.Env, peekRaw+2
	case "pillarenv":
		dst, index = &r.PillarEnv, peekRaw+3
	case "ext":
		dst, index = &r.Ext, peekRaw+4
	case "pretag":
		dst, index = &r.Pretag, peekRaw+5
	case "return":
		dst, index = &r.Return, peekRaw+6
	case "resource_id":
		dst, index = &r.ResourceID, peekRaw+7
	case "schedule":
		dst, index = &r.Schedule, peekRaw+8
	case "fsbackend":
		dst, index = &r.FSBackend, peekRaw+9
	case "back":
		dst, index = &r.Back, peekRaw+10
	case "resources":
		dst, index = &r.Resources, peekRaw+11
	case "resource_grains":
		dst, index = &r.Grains, peekRaw+12
	case "opts":
		dst, index = &r.Opts, peekRaw+13
	case "tgt_type":
		dst, index = &r.TgtType, peekRaw+14
	case "expr_form":
		dst, index = &r.ExprForm, peekRaw+15
	case "retcode":
		dst, index = &r.Retcode, peekRaw+16
	case "timeout":
		dst, index = &r.Timeout, peekRaw+17
	case "tmo":
		dst, index = &r.Tmo, peekRaw+18
	default:
		return nil
	}
	*dst = value
	if *s&(1<<index) != 0 {
		return refuse(ReasonDuplicate, string(key))
	}
	*s |= 1 << index
	return nil
}

// asArray returns value if it is an array, for walking later.
func asArray(value []byte) []byte {
	if h, err := readHead(value); err != nil || h.kind != kindArray {
		return nil
	}
	return value
}

func (p *Peek) setCmd(s *seen, value []byte) error {
	if err := s.checkFirst(peekCmd, "cmd"); err != nil {
		return err
	}
	b, err := readBlob(value, maxCmd, "cmd")
	if err != nil {
		return err
	}
	p.Cmd = commandName(b)
	return nil
}

func (p *Peek) setTS(s *seen, value []byte) error {
	if err := s.checkFirst(peekTS, "ts"); err != nil {
		return err
	}
	if p.TS, p.HasTS = Int(value); !p.HasTS {
		return refuse(ReasonType, "ts")
	}
	return nil
}

func (p *Peek) setTok(s *seen, value []byte) (err error) {
	if err := s.checkFirst(peekTok, "tok"); err != nil {
		return err
	}
	p.Tok, err = readBlob(value, maxTok, "tok")
	p.HasTok = true
	return err
}

// setPath accepts the text that file requests carry and the list of components of a _file_recv.
func (p *Peek) setPath(s *seen, value []byte) error {
	if err := s.checkFirst(peekPath, "path"); err != nil {
		return err
	}
	if b, ok := Bytes(value); ok {
		p.Path = string(b[:min(len(b), maxName)])
		return nil
	}
	if asArray(value) == nil {
		return nil
	}
	var joined []byte
	err := WalkArray(value, func(part []byte) error {
		b, _ := Bytes(part)
		if len(joined) > 0 {
			joined = append(joined, '/')
		}
		joined = append(joined, b...)
		joined = joined[:min(len(joined), maxName)]
		return nil
	})
	p.Path = string(joined)
	return err
}

// setText stores a field that must be a string.
func (s *seen) setText(dst *string, index uint, value []byte, limit int, field string) (err error) {
	if err := s.checkFirst(index, field); err != nil {
		return err
	}
	*dst, err = readText(value, limit, field)
	return err
}

// setOptional stores a field that may be a string or None.
func (s *seen) setOptional(dst *string, index uint, value []byte, limit int, field string) error {
	if isNil(value) {
		return s.checkFirst(index, field)
	}
	return s.setText(dst, index, value, limit, field)
}

// setJID stores a job id, which is text but reaches us as a number when a CLI read it as YAML. A value that is neither
// belongs to no publisher, and only a master can say what becomes of it.
func (s *seen) setJID(dst *string, index uint, value []byte) error {
	if u, ok := Uint(value); ok {
		*dst = strconv.FormatUint(u, 10)
		return s.checkFirst(index, "jid")
	}
	if _, ok := Bytes(value); ok {
		return s.setText(dst, index, value, maxJID, "jid")
	}
	return s.checkFirst(index, "jid")
}

// setFun stores a function name, the first of them when there is a list. It is for people and decides nothing, and
// masters take anything: a value that is not a name, or is too long for one, is passed over.
func (s *seen) setFun(dst *string, index uint, value []byte) error {
	if h, err := readHead(value); err == nil && h.kind == kindArray && h.size > 0 {
		value = value[h.len:]
		if h, err = readHead(value); err == nil && h.kind == kindBytes {
			value = value[:h.len+h.size]
		}
	}
	if b, ok := Bytes(value); ok && len(b) <= maxName {
		*dst = string(b)
	}
	return s.checkFirst(index, "fun")
}

// setMaster stores a master_id, which minions echo as it came. One that is a number in a master's configuration is the
// name that is written there; a value that cannot be a master's is passed over.
func (s *seen) setMaster(dst *string, index uint, value []byte) error {
	if u, ok := Uint(value); ok {
		*dst = strconv.FormatUint(u, 10)
	} else if i, ok := Int(value); ok {
		*dst = strconv.FormatInt(i, 10)
	} else if b, ok := Bytes(value); ok && len(b) <= maxID {
		*dst = string(b)
	}
	return s.checkFirst(index, "master_id")
}
