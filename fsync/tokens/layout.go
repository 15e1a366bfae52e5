package tokens

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"saltclusterd/fsync/msgpack"
)

// dir is where tokens lie in cachedir (salt/config/__init__.py: token_dir).
const dir = "tokens"

// Limits of a token, far beyond what Salt makes: sha512 in hexadecimal, and an access list with it (keep_acl_in_token).
const (
	minToken = 32
	maxToken = 128
	maxData  = 1 << 20
)

// errData says that a file or a record does not hold a token.
var errData = errors.New("not the data of a token")

// validToken says whether a text can be a token: a hash in hexadecimal. Other files, such as a master's temporary ones,
// are left alone.
func validToken(s string) bool {
	return len(s) >= minToken && len(s) <= maxToken && strings.Trim(s, "0123456789abcdef") == ""
}

// layout is how a version of Salt keeps tokens in files.
type layout interface {
	name() string             // of the layout
	file(token string) string // its name
	token(file string) (token string, ok bool)
	// unwrap returns the token's data in a file.
	unwrap(content []byte) []byte
	// wrap returns the file that holds data.
	wrap(data []byte, expire int64) []byte
	// swept says whether there are masters that take the time of a file for when its token expires, and remove it within a
	// minute.
	swept() bool
}

func newLayout(major int) layout {
	if major < bankSince {
		return plain{}
	}
	return bank{}
}

// plain is the layout of 3006 and 3007: the data, nothing else.
type plain struct{}

func (plain) name() string                     { return "plain" }
func (plain) file(token string) string         { return token }
func (plain) token(file string) (string, bool) { return file, validToken(file) }
func (plain) unwrap(content []byte) []byte     { return content }
func (plain) wrap(data []byte, _ int64) []byte { return data }
func (plain) swept() bool                      { return false }

// bank is the layout of 3008: what its cache makes of data that expire (salt/cache/__init__.py Cache.store).
type bank struct{}

const suffix = ".p"

func (bank) name() string             { return "bank" }
func (bank) file(token string) string { return token + suffix }

func (bank) token(file string) (string, bool) {
	token, ok := strings.CutSuffix(file, suffix)
	return token, ok && validToken(token)
}

func (bank) unwrap(content []byte) []byte {
	data, keys, wrapped := content, 0, false
	_ = msgpack.Entries(content, func(key string, value []byte) { // data other than a map are refused later
		if keys++; key == "data" {
			data, wrapped = value, true
		}
	})
	if !wrapped || keys != 2 { // token_expire: 0 is stored as it is
		return content
	}
	return data
}

func (bank) wrap(data []byte, expire int64) []byte {
	out := msgpack.AppendShort(msgpack.AppendMapHead(nil, 2), "data")
	out = msgpack.AppendShort(append(out, data...), "_expires")
	return msgpack.AppendUint(out, uint64(max(0, expire)))
}

// swept: 3008.0 and 3008.1 do (salt/cache/__init__.py Cache.clean_expired; issue #69307), as soon as they start; a
// master of a later release may become one of them before anybody knows. The later ones go by what is in the file.
func (bank) swept() bool { return true }

// parseToken checks the data of a token and returns when it expires, in seconds since 1970.
func parseToken(token string, data []byte) (expire int64, err error) {
	if len(data) > maxData {
		return 0, fmt.Errorf("%w: %d bytes", errData, len(data))
	}
	named, dated := false, false
	err = msgpack.Entries(data, func(key string, value []byte) {
		switch key {
		case "token":
			named = msgpack.Text(value) == token
		case "expire":
			if at, ok := msgpack.Number(value); ok && at >= 0 && at < math.MaxInt64/2 {
				expire, dated = int64(at), true
			}
		}
	})
	if err != nil || !named || !dated {
		return 0, errData
	}
	return expire, nil
}
