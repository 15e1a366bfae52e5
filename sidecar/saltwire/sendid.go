package saltwire

// ParseSendID reads what a minion with Salt's tcp transport sends on the publish port: {"enc": "aes", "load": …}
// (AsyncPubChannel.send_id). load is sealed with the master's AES key. Errors: *Refused.
func ParseSendID(body []byte) (load []byte, err error) {
	var s seen
	var sealed bool
	err = WalkMap(body, func(key []byte, value Value) (err error) {
		switch string(key) {
		case "enc":
			b, _ := Bytes(value)
			sealed = string(b) == EncAES
			return s.checkFirst(0, "enc")
		case "load":
			if err := s.checkFirst(1, "load"); err != nil {
				return err
			}
			load, err = readBlob(value, maxSendID, "load")
			return err
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case !sealed:
		return nil, refuse(ReasonEnc, "")
	case load == nil:
		return nil, refuse(ReasonMissing, "load")
	}
	return load, nil
}

// maxSendID bounds the sealed id and token of a minion.
const maxSendID = 4 << 10

// ParseNamedToken reads the plaintext of such a load: {"id": …, "tok": …}. Errors: *Refused.
func ParseNamedToken(plain []byte) (id string, tok []byte, err error) {
	var s seen
	err = WalkMap(plain, func(key []byte, value Value) (err error) {
		switch string(key) {
		case "id":
			return s.setText(&id, 0, value, maxID, "id")
		case "tok":
			if err := s.checkFirst(1, "tok"); err != nil {
				return err
			}
			tok, err = readBlob(value, maxTok, "tok")
			return err
		}
		return nil
	})
	if err != nil {
		return "", nil, err
	}
	return id, tok, ValidID(id)
}
