package support

import (
	"errors"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/cmd/saltclusterd/config"
)

// A file that this user may not read is no mistake of the configuration.
func TestJudgeConfig(t *testing.T) {
	t.Parallel()
	mistake := config.Finding{File: "/f", Line: 2, Message: "there is no option nonsense"}
	denied := config.Finding{File: "/f.d", Message: "cannot be read: permission denied", Denied: true}
	for _, c := range []struct {
		err   error
		level doctor.Level
		says  string
	}{
		{nil, doctor.OK, "2 files without errors"},
		{config.Findings{mistake}, doctor.Fail, "nonsense"},
		{config.Findings{mistake, denied}, doctor.Skip, "/f.d: cannot be read"},
		{errors.New("other"), doctor.Fail, "other"},
	} {
		if got := judgeConfig("/f", 2, c.err); got.Level != c.level || !strings.Contains(got.What, c.says) {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
}
