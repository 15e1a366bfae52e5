package saltwire

// The algorithm names Salt knows (salt/crypt.py), the defaults of a minion first.
const (
	encSHA1   = "OAEP-SHA1"
	encSHA224 = "OAEP-SHA224"
	sigSHA1   = "PKCS1v15-SHA1"
	sigSHA224 = "PKCS1v15-SHA224"
)

func encAlgo(value []byte) (string, error) {
	b, ok := Bytes(value)
	switch {
	case !ok:
		return "", refuse(ReasonType, "enc_algo")
	case string(b) == encSHA1:
		return encSHA1, nil
	case string(b) == encSHA224:
		return encSHA224, nil
	}
	return "", refuse(ReasonEncAlgo, "enc_algo")
}

func sigAlgo(value []byte) (string, error) {
	b, ok := Bytes(value)
	switch {
	case !ok:
		return "", refuse(ReasonType, "sig_algo")
	case string(b) == sigSHA1:
		return sigSHA1, nil
	case string(b) == sigSHA224:
		return sigSHA224, nil
	}
	return "", refuse(ReasonSigAlgo, "sig_algo")
}
