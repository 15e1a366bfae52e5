package masterlink

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
)

// unreadable returns the error of a file of the master's configuration that this process may not read: which user,
// which file, and what to type.
func unreadable(err error) error {
	name, group := strconv.Itoa(os.Geteuid()), strconv.Itoa(os.Getegid())
	if u, lookupErr := user.LookupId(name); lookupErr == nil {
		name = u.Username
	}
	if g, lookupErr := user.LookupGroupId(group); lookupErr == nil {
		group = g.Name
	}
	file := "the master's configuration"
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		file, err = e.Path, e.Err
	}
	return fmt.Errorf("the user %s cannot read %s: %w; run chgrp %s and chmod g+r on it", name, file, err, group)
}
