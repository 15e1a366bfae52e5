package localmaster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ErrVersion means that a text holds no Salt version, or one of a release line the sidecar does not know.
var ErrVersion = errors.New("localmaster: unknown Salt version")

// The release lines whose formats are known.
const (
	MinMajor = 3006
	MaxMajor = 3008
)

const (
	versionTimeout = 30 * time.Second // Python takes its time on a cold disk
	maxVersionText = 64 << 10
)

// Version is a Salt release: Major 3006, Minor 28.
type Version struct {
	Major, Minor int
	Text         string // as printed, e.g. "3006.28"
}

var versionText = regexp.MustCompile(`(?:^|[\s:v"])((30\d\d)(?:\.(\d{1,4}))?[0-9A-Za-z.+~-]*)`)

// ParseVersion reads "3006.28", "salt-master 3006.28 (Sulfur)" or the Salt line of --versions-report. Errors:
// ErrVersion.
func ParseVersion(text string) (Version, error) {
	m := versionText.FindStringSubmatch(text[:min(len(text), maxVersionText)])
	if m == nil {
		return Version{}, fmt.Errorf("%w: %.60q", ErrVersion, text)
	}
	major, _ := strconv.Atoi(m[2])
	minor, _ := strconv.Atoi(m[3])
	v := Version{Major: major, Minor: minor, Text: m[1]}
	if !v.Supported() {
		return v, fmt.Errorf("%w: %s; supported are %d to %d", ErrVersion, v, MinMajor, MaxMajor)
	}
	return v, nil
}

// DetectVersion asks the salt-master command (split at blanks, run without a shell) for its version: --version, and
// where that says nothing useful, --versions-report.
func DetectVersion(ctx context.Context, saltMasterCmd string) (Version, error) {
	args := strings.Fields(saltMasterCmd)
	if len(args) == 0 {
		return Version{}, fmt.Errorf("detect Salt version: no command given")
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	var errs []error
	for _, flag := range []string{"--version", "--versions-report"} {
		v, err := askVersion(ctx, args, flag)
		if err == nil {
			return v, nil
		}
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) { // its interpreter, perhaps
			return Version{}, fmt.Errorf("no executable program %s on this host: "+
				"install Salt, or set salt_master_command to its path", args[0])
		}
		errs = append(errs, err)
	}
	return Version{}, fmt.Errorf("detect Salt version: %w", errors.Join(errs...))
}

func askVersion(ctx context.Context, args []string, flag string) (Version, error) {
	cmd := exec.CommandContext(ctx, args[0], append(args[1:len(args):len(args)], flag)...)
	cmd.WaitDelay = time.Second
	var out limitedBuffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return Version{}, fmt.Errorf("%s %s: %w", args[0], flag, err)
	}
	v, err := ParseVersion(out.String())
	if err != nil {
		return v, fmt.Errorf("%s %s: %w", args[0], flag, err)
	}
	return v, nil
}

// limitedBuffer keeps the beginning of what a command prints.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if room := maxVersionText - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// TakesLengths reports whether the event bus of a release takes events with their length before them: from 3006.26,
// 3007.15 and 3008.2 on (salt/transport/frame.py frame_msg_ipc). The ones before take the maps alone; a length is four
// numbers to them, which are not maps, and the event is lost. A version that does not tell which release of its line it
// is counts as a late one.
func (v Version) TakesLengths() bool {
	return v.isSince(map[int]int{3006: 26, 3007: 15, 3008: 2})
}

// RereadsSessions reports whether the workers of a release notice that the file of a session key was replaced: from
// 3007.15 and 3008.3 on (salt/channel/server.py session_key). The ones before, and all of 3006, keep what they have
// read for publish_session.
func (v Version) RereadsSessions() bool {
	return v.Major > 3006 && v.isSince(map[int]int{3007: 15, 3008: 3})
}

// AsksSigningAlgorithm reports whether a release checks signed returns by its option signing_algorithm: from 3006.26,
// 3007.15 and 3008.1 on (salt/master.py AESFuncs._return). The ones before take SHA-1 whatever that says, but for
// 3008.0, which cannot check any.
func (v Version) AsksSigningAlgorithm() bool {
	return v.isSince(map[int]int{3006: 26, 3007: 15, 3008: 1})
}

// isSince reports whether this is the release of its line that first has something, or a later one. One whose line is
// not listed has it, and one that does not tell which release of its line it is (3007+12.g0a1b2c, built from a
// repository).
func (v Version) isSince(first map[int]int) bool {
	minor, listed := first[v.Major]
	return !listed || v.Minor >= minor || v.Minor == 0 && !strings.HasPrefix(v.Text, strconv.Itoa(v.Major)+".")
}

// Supported reports whether this release line is one the sidecar knows.
func (v Version) Supported() bool { return v.Major >= MinMajor && v.Major <= MaxMajor }

// String returns the version as printed by Salt.
func (v Version) String() string { return v.Text }
