package admin

import (
	"bytes"
	"context"
	"io"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

func TestProfiles(t *testing.T) {
	_, c := start(t, &fakeBackend{})
	zipped := []byte{0x1f, 0x8b}
	for _, q := range []adminapi.ProfileQuery{
		{Kind: adminapi.ProfileCPU, For: time.Second},
		{Kind: adminapi.ProfileHeap},
		{Kind: adminapi.ProfileGoroutines},
	} {
		var file bytes.Buffer
		if err := c.Profile(t.Context(), q, &file); err != nil || !bytes.HasPrefix(file.Bytes(), zipped) {
			t.Errorf("%+v: %d bytes, %v", q, file.Len(), err)
		}
	}
	var text bytes.Buffer
	if err := c.Profile(t.Context(), adminapi.ProfileQuery{Kind: adminapi.ProfileGoroutines, Text: true},
		&text); err != nil || !strings.Contains(text.String(), "TestProfiles") {
		t.Errorf("%v, %s", err, &text)
	}
}

// Only one at a time can be taken of a process; who goes away makes room.
func TestProfile_Busy(t *testing.T) {
	_, c := start(t, &fakeBackend{})
	one := adminapi.ProfileQuery{Kind: adminapi.ProfileCPU, For: time.Second}
	require.NoError(t, pprof.StartCPUProfile(io.Discard))
	err := c.Profile(t.Context(), one, io.Discard)
	pprof.StopCPUProfile()
	if adminapi.CodeOf(err) != adminapi.CodeBusy {
		t.Errorf("two at a time: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := c.Profile(ctx, adminapi.ProfileQuery{Kind: adminapi.ProfileCPU, For: time.Minute}, io.Discard); err == nil {
		t.Error("a minute has passed")
	}
	for deadline := time.Now().Add(30 * time.Second); c.Profile(t.Context(), one, io.Discard) != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the one who went away is waited for")
		}
	}
}
