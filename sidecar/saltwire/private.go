package saltwire

// PrivateReply is the answer to _pillar: a map in clear whose parts are sealed for one minion
// (salt/channel/server.py:ReqServerChannel._encrypt_private). It passes through us unchanged; these functions are for
// those who ask for a pillar themselves, and for tests. Slices alias the body.
type PrivateReply struct {
	Key    []byte // a fresh AES key string, encrypted to the minion's key (OAEP)
	Pillar []byte // Crypticle ciphertext under that key, of a SignedReply
}

// ParsePrivateReply reads the reply body. Errors: *Refused.
func ParsePrivateReply(body []byte) (PrivateReply, error) {
	var p PrivateReply
	return p, twoBlobs(body, "key", &p.Key, "pillar", &p.Pillar)
}

// SignedReply is what a private reply's pillar decrypts to.
type SignedReply struct {
	Data []byte // msgpack of PrivateData
	Sig  []byte // PKCS#1 v1.5 signature of Data with master.pem
}

// ParseSignedReply reads the plaintext of PrivateReply.Pillar. Errors: *Refused.
func ParseSignedReply(plain []byte) (SignedReply, error) {
	var r SignedReply
	return r, twoBlobs(plain, "data", &r.Data, "sig", &r.Sig)
}

func twoBlobs(raw []byte, name1 string, dst1 *[]byte, name2 string, dst2 *[]byte) error {
	var s seen
	err := WalkMap(raw, func(key, value []byte) error {
		dst, index := dst1, uint(0)
		switch string(key) {
		case name1:
		case name2:
			dst, index = dst2, 1
		default:
			return nil
		}
		b, ok := Bytes(value)
		if !ok {
			return refuse(ReasonType, string(key))
		}
		*dst = b
		return s.checkFirst(index, string(key))
	})
	if err == nil && s != 3 {
		err = refuse(ReasonMissing, name1+" or "+name2)
	}
	return err
}

// PrivateData is what a master signs of a private reply.
type PrivateData struct {
	Key    []byte // must equal PrivateReply.Key
	Nonce  string // must equal the request's
	Pillar []byte // raw msgpack
}

// ParsePrivateData reads SignedReply.Data. Errors: *Refused.
func ParsePrivateData(data []byte) (PrivateData, error) {
	var d PrivateData
	var s seen
	err := WalkMap(data, func(key, value []byte) (err error) {
		switch string(key) {
		case "key":
			if d.Key, err = readBlob(value, maxReplyField, "key"); err == nil {
				err = s.checkFirst(0, "key")
			}
		case "nonce":
			err = s.setText(&d.Nonce, 1, value, maxNonce, "nonce")
		case "pillar":
			d.Pillar, err = value, s.checkFirst(2, "pillar")
		}
		return err
	})
	if err == nil && s != 7 {
		err = refuse(ReasonMissing, "key, nonce or pillar")
	}
	return d, err
}
