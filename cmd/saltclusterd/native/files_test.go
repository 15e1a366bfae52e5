package native

import (
	"slices"
	"testing"
)

func TestPrivateDirs(t *testing.T) {
	for name, c := range map[string]struct {
		mounts string
		want   []string
	}{
		"private": {
			"612 611 254:0 / / ro,relatime shared:9 master:1 - ext4 /dev/vda rw\n" +
				"644 612 254:0 /tmp/systemd-private-5f0e-saltclusterd.service-Xy12Ab/tmp /tmp " +
				"rw,relatime shared:40 master:1 - ext4 /dev/vda rw\n" +
				"645 612 254:0 /var/tmp/systemd-private-5f0e-saltclusterd.service-Zz/tmp /var/tmp " +
				"rw,relatime shared:41 - ext4 /dev/vda rw\n",
			[]string{"/tmp", "/var/tmp"},
		},
		"on a tmpfs": {
			"644 612 0:33 /systemd-private-5f0e-saltclusterd.service-Xy/tmp /tmp rw - tmpfs tmpfs rw\n", []string{"/tmp"},
		},
		"the host's": {"30 1 254:0 / / rw - ext4 /dev/vda rw\n40 30 0:33 / /tmp rw - tmpfs tmpfs rw\n", nil},
		"elsewhere":  {"44 30 254:0 /systemd-private-5f0e/tmp /srv/tmp rw - ext4 /dev/vda rw\n", nil},
		"nothing":    {"", nil},
	} {
		if got := privateDirs(c.mounts); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
