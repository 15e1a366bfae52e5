package saltwire

const (
	cmdAuth   = "_auth"
	maxNonce  = 64   // stock: 32 hex digits
	maxPub    = 4096 // an 8192-bit key takes about 1,500 characters
	maxToken  = 1024 // RSA ciphertext of an 8192-bit key
	maxGrains = 64 << 10
	maxFields = 64
)

// AuthRequest is the load of a sign-in (salt/crypt.py:AsyncAuth.minion_sign_in_payload).
type AuthRequest struct {
	ID             string
	Nonce          string
	Pub            string // PEM text as sent; printable, but parsed by no one yet
	EncAlgo        string // one that Salt knows; "OAEP-SHA1" when the minion sent none
	SigAlgo        string // one that Salt knows; "PKCS1v15-SHA1" when the minion sent none
	Token          []byte // OAEP ciphertext the master must echo; nil when absent. Aliases the load.
	AutosignGrains []byte // raw msgpack of the map; nil when absent. Aliases the load.
}

// Indexes of fields for seen.
const (
	authCmd uint = iota
	authID
	authNonce
	authPub
	authEnc
	authSig
	authToken
	authGrains
)

// ParseAuth reads the load of a clear request whose command is _auth, so strictly that a worker which gets it finds
// nothing to stumble over (docs/dev/protocol.md §2.2); only whether Pub is a good RSA key is left to the caller. An
// algorithm Salt does not know gives ReasonEncAlgo or ReasonSigAlgo, which are also the texts stock masters answer
// (AppendClearRet). Errors: *Refused.
func ParseAuth(load []byte) (AuthRequest, error) {
	it, err := openMap(load, openRules)
	if err != nil {
		return AuthRequest{}, err
	}
	if it.left > maxFields {
		return AuthRequest{}, refuse(ReasonTooManyKey, "")
	}
	a := AuthRequest{EncAlgo: encSHA1, SigAlgo: sigSHA1}
	var s seen
	for {
		key, value, ok, err := it.nextPair()
		if err != nil {
			return AuthRequest{}, err
		}
		if !ok {
			break
		}
		if err := a.setField(&s, string(key), value); err != nil {
			return AuthRequest{}, err
		}
	}
	if err := a.checkFields(s); err != nil {
		return AuthRequest{}, err
	}
	return a, nil
}

func (a *AuthRequest) setField(s *seen, key string, value []byte) (err error) {
	index := authField(key)
	if index < 0 {
		return nil
	}
	if err := s.checkFirst(uint(index), key); err != nil {
		return err
	}
	switch uint(index) {
	case authCmd:
		if b, _ := Bytes(value); string(b) != cmdAuth {
			return refuse(ReasonCommand, "cmd")
		}
	case authID:
		a.ID, err = readText(value, maxID, key)
	case authNonce:
		a.Nonce, err = readPrintable(value, maxNonce, key)
	case authPub:
		a.Pub, err = readPrintable(value, maxPub, key)
	case authEnc:
		a.EncAlgo, err = encAlgo(value)
	case authSig:
		a.SigAlgo, err = sigAlgo(value)
	case authToken:
		a.Token, err = readBlob(value, maxToken, key)
	case authGrains:
		a.AutosignGrains, err = readGrains(value, key)
	}
	return err
}

// authField returns the index of a field of a sign-in, -1 for one that is not read.
func authField(key string) int {
	for i, name := range [...]string{"cmd", "id", "nonce", "pub", "enc_algo", "sig_algo", "token", "autosign_grains"} {
		if key == name {
			return i
		}
	}
	return -1
}

func (a *AuthRequest) checkFields(s seen) error {
	for _, f := range []struct {
		index uint
		name  string
	}{{authCmd, "cmd"}, {authID, "id"}, {authNonce, "nonce"}, {authPub, "pub"}} {
		if s&(1<<f.index) == 0 {
			return refuse(ReasonMissing, f.name)
		}
	}
	if a.Nonce == "" {
		return refuse(ReasonMissing, "nonce")
	}
	return ValidID(a.ID)
}

func readGrains(value []byte, field string) ([]byte, error) {
	if isNil(value) {
		return nil, nil
	}
	if len(value) > maxGrains {
		return nil, refuse(ReasonSize, field)
	}
	it, err := openMap(value, openRules)
	if err != nil {
		return nil, refuse(ReasonType, field)
	}
	for {
		if _, _, ok, err := it.nextPair(); err != nil || !ok {
			return value, err
		}
	}
}

// readPrintable copies a field of printable ASCII and line ends.
func readPrintable(value []byte, limit int, field string) (string, error) {
	b, err := readBlob(value, limit, field)
	if err != nil {
		return "", err
	}
	for _, c := range b {
		if (c < ' ' || c > '~') && c != '\n' && c != '\r' {
			return "", refuse(ReasonNotText, field)
		}
	}
	return string(b), nil
}

// AppendAuth writes the load of a sign-in: Load of a clear Envelope of version 3.
func AppendAuth(dst []byte, a AuthRequest) []byte {
	n := 6
	if a.AutosignGrains != nil {
		n++
	}
	if a.Token != nil {
		n++
	}
	dst = AppendMapHeader(dst, n)
	dst = AppendRaw(AppendRaw(dst, "cmd"), cmdAuth)
	dst = AppendRaw(AppendRaw(dst, "id"), a.ID)
	dst = AppendRaw(AppendRaw(dst, "nonce"), a.Nonce)
	dst = AppendRaw(AppendRaw(dst, "enc_algo"), a.EncAlgo)
	dst = AppendRaw(AppendRaw(dst, "sig_algo"), a.SigAlgo)
	if a.AutosignGrains != nil {
		dst = append(AppendRaw(dst, "autosign_grains"), a.AutosignGrains...)
	}
	if a.Token != nil {
		dst = AppendRaw(AppendRaw(dst, "token"), a.Token)
	}
	return AppendRaw(AppendRaw(dst, "pub"), a.Pub)
}
