package rotation

import (
	"context"
	"errors"
	"testing"

	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

func TestVerbs_Rotate(t *testing.T) {
	failed, noMember := errors.New("failed"), error(nil)
	kinds := map[string]Func{
		adminapi.RotateAES: func(context.Context, adminapi.RotateRequest, admin.Progress) (adminapi.Outcome, error) {
			return adminapi.Outcome{Message: "done"}, nil
		},
		adminapi.RotateSecret: func(context.Context, adminapi.RotateRequest, admin.Progress) (adminapi.Outcome, error) {
			return adminapi.Outcome{Message: "half"}, failed
		},
	}
	v := Verbs{Of: func() (map[string]Func, adminapi.Outcome, error) {
		return kinds, adminapi.Outcome{Node: "m1", UUID: "u"}, noMember
	}}
	for _, what := range []string{"", adminapi.RotateAES} {
		out, err := v.Rotate(t.Context(), adminapi.RotateRequest{What: what, DryRun: true}, nil)
		if err != nil || out.Message != "nothing was changed; done" || out.Node != "m1" || out.UUID != "u" {
			t.Errorf("%q: %+v, %v", what, out, err)
		}
	}
	out, err := v.Rotate(t.Context(), adminapi.RotateRequest{What: adminapi.RotateSecret}, nil)
	if !errors.Is(err, failed) || out.Message != "" {
		t.Errorf("%+v, %v", out, err)
	}
	nonsense := adminapi.RotateRequest{What: "nonsense"}
	if _, err := v.Rotate(t.Context(), nonsense, nil); adminapi.CodeOf(err) != adminapi.CodeInvalid {
		t.Errorf("nonsense: %v", err)
	}
	noMember = errors.New("no cluster")
	if _, err := v.Rotate(t.Context(), nonsense, nil); !errors.Is(err, noMember) {
		t.Errorf("without a cluster: %v", err)
	}
}
