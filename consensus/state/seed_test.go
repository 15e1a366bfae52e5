package state

import (
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

func testSeed(c byte) Secret { return SecretText(strings.Repeat(string(c), MinSeed)) }

func seedCommands() []Command {
	return []Command{SeedRotate{
		Expect: 1, Seed: testSeed('s'), Key: testEpochKey('S'), Reason: "age", Audit: Audit{By: "m1", At: 5, Cause: "test"},
	}}
}

// What was written of the first seeds must be read for ever.
func TestFixturesOfTheFirstSeeds(t *testing.T) {
	s := born(t)
	s.ApplyCommands(seedCommands()...)
	snapshot := fixture(t, "testdata/v1/seeds_snapshot.jsonl", dump(t, s.View()))
	got, err := ReadSnapshot(strings.NewReader(snapshot))
	require.NoError(t, err)
	if dump(t, got.View()) != dump(t, s.View()) {
		t.Error("the snapshot means something else today")
	}
}

// A seed gets a successor together with the AES key, keeps its predecessor, and is due when a member is gone.
func TestSeedRotation(t *testing.T) {
	s := born(t)
	first := s.View().Seeds().Current
	if text := dump(t, s.View()); strings.Contains(text, `"seeds"`) {
		t.Errorf("older nodes cannot read %s", text)
	}
	for _, c := range []struct {
		name string
		cmd  SeedRotate
		want Code
	}{
		{"the seed there is", SeedRotate{Expect: 1, Seed: first.Key, Key: testEpochKey('B')}, Invalid},
		{"a short seed", SeedRotate{Expect: 1, Seed: SecretText("short"), Key: testEpochKey('B')}, Invalid},
		{"another epoch", SeedRotate{Expect: 7, Seed: testSeed('b'), Key: testEpochKey('B')}, Conflict},
	} {
		if r := s.ApplyCommands(c.cmd)[0]; r.Code != c.want {
			t.Errorf("%s: %+v", c.name, r)
		}
		if v := s.View(); v.Seeds().Current.N != 1 || v.Epochs().Current.N != 1 {
			t.Fatalf("%s: half of it was done", c.name)
		}
	}
	s.ApplyCommands(MemberAdd{ID: "m2", Addr: "h:1", Fingerprint: testFP('b'), Weight: 7})
	s.ApplyCommands(MemberRemove{ID: "m2"})
	if !s.View().SeedDue() {
		t.Error("a member was removed, but the seed that it knows stays")
	}
	if r := s.ApplyCommands(SeedRotate{Expect: 1, Seed: testSeed('b'), Key: testEpochKey('B'),
		Reason: "member removed"})[0]; r.Code != OK {
		t.Fatalf("%+v", r)
	}
	for range 2 { // also as a snapshot tells it
		v := s.View()
		seeds := v.Seeds()
		if v.SeedDue() || v.Epochs().Current.N != 2 || seeds.Current.N != 2 || !seeds.Current.Key.Equal(testSeed('b')) ||
			!seeds.Previous.Key.Equal(first.Key) {
			t.Errorf("epoch %d, seeds %+v, due %v", v.Epochs().Current.N, seeds, v.SeedDue())
		}
		var err error
		if s, err = ReadSnapshot(strings.NewReader(dump(t, v))); err != nil {
			t.Fatal(err)
		}
	}
	survivor := Member{ID: "m1", Addr: "h:1", Fingerprint: testFP('a'), Weight: 1}
	require.NoError(t, s.Recover(Recovery{Survivor: survivor, GossipKey: SecretText(strings.Repeat("g", 32))}))
	if !s.View().SeedDue() {
		t.Error("the cluster was recovered, but the seed that the others know stays")
	}
}
