package localmaster

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// Owner is who the master's files belong to. -1 means: leave it as created.
type Owner struct{ UID, GID int }

// Unowned leaves owner and group as created.
var Unowned = Owner{-1, -1}

// Owner returns the account the master runs as, which its files must belong to. Only root can give files away: any
// other user creates its own, and is the master's user or will not get far.
func (c *Config) Owner() (Owner, error) {
	if os.Geteuid() != 0 {
		return Unowned, nil
	}
	u, err := user.Lookup(c.User)
	if err != nil {
		return Unowned, fmt.Errorf("master's option user: %w", err)
	}
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	if errUID != nil || errGID != nil {
		return Unowned, fmt.Errorf("master's option user: account %s has no numeric ids", c.User)
	}
	return Owner{uid, gid}, nil
}
