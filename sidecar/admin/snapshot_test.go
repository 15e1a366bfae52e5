package admin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"saltclusterd/sidecar/adminapi"
)

func TestSnapshots(t *testing.T) {
	b := &fakeBackend{recover: func(_ context.Context, r adminapi.RecoverRequest, _ Progress) (adminapi.Outcome, error) {
		if r.Rev != 3 {
			return adminapi.Outcome{}, errors.New("another plan")
		}
		return adminapi.Outcome{Node: "m1"}, nil
	}}
	_, c := start(t, b)
	var file bytes.Buffer
	if err := c.SaveSnapshot(t.Context(), &file); err != nil || file.String() != "SNAPSHOT" {
		t.Errorf("save: %q, %v", &file, err)
	}
	big := strings.Repeat("x", 3<<20)
	told := 0
	out, err := c.RestoreSnapshot(t.Context(), adminapi.RestoreRequest{Wait: true, Timeout: time.Minute},
		strings.NewReader(big), func(adminapi.Progress) { told++ })
	if err != nil || out.Message != strconv.Itoa(len(big)) || !out.Ready || told != 1 {
		t.Errorf("restore: %s bytes, %v", out.Message, err)
	}
	plan, err := c.RecoverPlan(t.Context())
	if err != nil || plan.Rev != 3 {
		t.Errorf("plan: %+v, %v", plan, err)
	}
	if _, err := c.Recover(t.Context(), adminapi.RecoverRequest{Rev: plan.Rev}, nil); err != nil {
		t.Errorf("recover: %v", err)
	}
}

func TestSnapshotThatFails(t *testing.T) {
	b := &fakeBackend{save: func(io.Writer) error { return adminapi.Errorf(adminapi.CodeNotMember, "", "no cluster") }}
	_, c := start(t, b)
	if err := c.SaveSnapshot(t.Context(), io.Discard); adminapi.CodeOf(err) != adminapi.CodeNotMember {
		t.Errorf("before the first byte: %v", err)
	}
	b.save = func(w io.Writer) error {
		_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20))
		return errors.New("disk broke")
	}
	if err := c.SaveSnapshot(t.Context(), io.Discard); err == nil {
		t.Error("a piece is taken for a whole")
	}
}
