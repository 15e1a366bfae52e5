package drain

import (
	"fmt"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
)

// publication returns the plaintext of a publication as a master writes it.
func publication(jid, fun string, args ...string) []byte {
	b := saltwire.AppendMapHeader(nil, 6)
	for _, kv := range [][2]string{{"fun", fun}, {"tgt", "*"}, {"jid", jid}, {"ret", ""}, {"tgt_type", "glob"}} {
		b = saltwire.AppendRaw(saltwire.AppendRaw(b, kv[0]), kv[1])
	}
	b = saltwire.AppendArrayHeader(saltwire.AppendRaw(b, "arg"), len(args))
	for _, a := range args {
		b = saltwire.AppendRaw(b, a)
	}
	return b
}

func TestRunningJobs(t *testing.T) {
	now := time.Now()
	type progress struct{ got, want int }
	cache := map[string]progress{}
	j := NewRunningJobs(15*time.Second, func(jid string) (int, int) { return cache[jid].got, cache[jid].want })
	j.now = func() time.Time { return now }
	running := func(what string, want int) {
		t.Helper()
		if got := j.Running(); got != want {
			t.Errorf("%s: %d jobs are running, want %d", what, got, want)
		}
	}
	note := func(plain []byte) {
		t.Helper()
		peek, err := saltwire.PeekPub(plain)
		require.NoError(t, err)
		j.Add(peek, plain)
	}
	running("nothing published", 0)
	note(publication("1", "test.ping"))
	note(publication("2", "state.apply"))
	note(publication("9", "saltutil.find_job", "2")) // not a job that is waited for
	running("two published", 2)
	cache["1"], cache["2"] = progress{3, 3}, progress{1, 3}
	running("one has all returns", 1)

	for range 10 { // its command line asks again
		now = now.Add(15 * time.Second)
		note(publication("9", "saltutil.find_job", "2"))
		running("still waited for", 1)
	}
	now = now.Add(15 * time.Second)
	cache["2"] = progress{2, 3}
	running("a return came", 1)
	now = now.Add(15 * time.Second)
	running("no question for a while", 1)
	now = now.Add(15 * time.Second)
	running("not waited for any more", 0)
	note(publication("9", "saltutil.find_job", "2"))
	running("a late question", 0)
	if c := j.Counts(); c.Running != 0 || c.Expected != 6 || c.Returned != 5 {
		t.Errorf("%+v, want 6 returns expected and one of them missing", c)
	}

	for i := range maxRunningJobs + 10 {
		note(publication(fmt.Sprint("x", i), "test.ping"))
	}
	running("bounded", maxRunningJobs)
}

func TestRunningJobs_Inherit(t *testing.T) {
	done := map[string]bool{"2": true}
	j := NewRunningJobs(15*time.Second, func(jid string) (int, int) {
		if done[jid] {
			return 3, 3
		}
		return 1, 3
	})
	j.Inherit([]string{"3", "2"})
	if n := j.Running(); n != 1 {
		t.Errorf("%d jobs are running, want the one that has not ended", n)
	}
	done["3"] = true
	if n := j.Running(); n != 0 {
		t.Errorf("%d jobs are running after all returns", n)
	}
}
