package masterlink

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

func TestUnreadable(t *testing.T) {
	err := unreadable(fmt.Errorf("load: %w", &fs.PathError{Op: "open", Path: "/etc/salt/master.d/x.conf", Err: fs.ErrPermission}))
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v is not a permission error", err)
	}
	for _, want := range []string{"cannot read /etc/salt/master.d/x.conf: permission denied", "run chgrp ", "chmod g+r"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: without %q", err, want)
		}
	}
}
