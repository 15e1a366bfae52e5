package keydir

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"saltclusterd/consensus/state"
)

// place is one of the four directories.
type place uint8

const (
	rejectedDir place = iota
	acceptedDir
	pendingDir
	deniedDir
	places
)

// keyPlaces are the directories of keys in the order in which they count when an id is in several: the order of
// salt/channel/server.py:ReqServerChannel._auth.
var keyPlaces = [...]place{rejectedDir, acceptedDir, pendingDir}

// lookOrder is the order in which they are read. Stock moves go from pending to the others, so a file that moves while
// we look is seen twice rather than never.
var lookOrder = [...]place{pendingDir, rejectedDir, acceptedDir, deniedDir}

var placeNames = [places]string{
	rejectedDir: "minions_rejected", acceptedDir: "minions", pendingDir: "minions_pre", deniedDir: "minions_denied",
}

func (p place) String() string { return placeNames[p] }

// keyState is the state that a file in p stands for.
func (p place) keyState() state.KeyState {
	switch p {
	case rejectedDir:
		return state.KeyRejected
	case acceptedDir:
		return state.KeyAccepted
	case pendingDir:
		return state.KeyPending
	}
	return state.KeyDeleted
}

// placeOf is the directory of keys in state s.
func placeOf(s state.KeyState) place {
	switch s {
	case state.KeyRejected:
		return rejectedDir
	case state.KeyAccepted:
		return acceptedDir
	}
	return pendingDir
}

const (
	tempPrefix = ".saltcluster-"
	// keyCache is where masters with key_cache: sched keep a list of accepted minions (salt/master.py:Maintenance).
	keyCache = ".key_cache"
)

// stockTemp matches names that 3008 gives to files it has not finished (tempfile.mkstemp). A minion may also have such
// an id, so such files are only watched longer.
var stockTemp = regexp.MustCompile(`^tmp[a-z0-9_]{8}$`)

// keyPrint identifies the content of a key file: half a SHA-256 over the text without what Salt's clean_key takes away.
type keyPrint string

func printOf(text string) keyPrint {
	text = strings.TrimSpace(text)
	if strings.ContainsRune(text, '\r') {
		text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	}
	sum := sha256.Sum256([]byte(text))
	return keyPrint(hex.EncodeToString(sum[:16]))
}

var errNoKey = errors.New("the file holds no public key")

// checkText says whether content is a whole public key file. Masters of 3006 and 3007 fill files in place, so what does
// not parse may be half of one.
func checkText(content []byte) (string, error) {
	text := string(content)
	if len(text) > state.MaxPub || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return "", errNoKey
	}
	block, rest := pem.Decode([]byte(strings.TrimSpace(text) + "\n"))
	if block == nil || len(strings.TrimSpace(string(rest))) > 0 || !strings.HasSuffix(block.Type, "PUBLIC KEY") {
		return "", errNoKey
	}
	return text, nil
}
