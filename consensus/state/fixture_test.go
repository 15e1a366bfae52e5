package state

import (
	"os"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

// What version 1 wrote must be read for ever, and mean the same.
func TestFixturesOfVersion1(t *testing.T) {
	snapshot := fixture(t, "testdata/v1/snapshot.jsonl", dump(t, firstFilled(t).View()))
	s, err := ReadSnapshot(strings.NewReader(snapshot))
	require.NoError(t, err)
	if dump(t, s.View()) != dump(t, firstFilled(t).View()) {
		t.Error("the snapshot means something else today")
	}
	b, err := EncodeEntry(Entry{Requests: []Request{{ID: "m1/1", Since: 3, Commands: firstCommands()}}})
	require.NoError(t, err)
	entry := fixture(t, "testdata/v1/entry.json", string(b))
	e, err := DecodeEntry([]byte(entry))
	require.NoError(t, err)
	if again, err := EncodeEntry(e); err != nil || string(again) != string(b) {
		t.Errorf("the entry means something else today: %v", err)
	}
}

// The trees came later; what was written of them first must be read for ever, too.
func TestFixturesOfTheFirstTrees(t *testing.T) {
	snapshot := fixture(t, "testdata/v1/roots_snapshot.jsonl", dump(t, rootsFilled(t).View()))
	s, err := ReadSnapshot(strings.NewReader(snapshot))
	require.NoError(t, err)
	if dump(t, s.View()) != dump(t, rootsFilled(t).View()) {
		t.Error("the snapshot means something else today")
	}
	b, err := EncodeEntry(Entry{Requests: []Request{{ID: "m1/1", Since: 3, Commands: rootsCommands()}}})
	require.NoError(t, err)
	e, err := DecodeEntry([]byte(fixture(t, "testdata/v1/roots_entry.json", string(b))))
	require.NoError(t, err)
	if again, err := EncodeEntry(e); err != nil || string(again) != string(b) {
		t.Errorf("the entry means something else today: %v", err)
	}
}

// And of the right to join.
func TestFixturesOfTheFirstTokens(t *testing.T) {
	snapshot := fixture(t, "testdata/v1/join_snapshot.jsonl", dump(t, filled(t).View()))
	s, err := ReadSnapshot(strings.NewReader(snapshot))
	require.NoError(t, err)
	if dump(t, s.View()) != dump(t, filled(t).View()) {
		t.Error("the snapshot means something else today")
	}
	b, err := EncodeEntry(Entry{Requests: []Request{{ID: "m1/1", Since: 3, Commands: joinCommands()}}})
	require.NoError(t, err)
	e, err := DecodeEntry([]byte(fixture(t, "testdata/v1/join_entry.json", string(b))))
	require.NoError(t, err)
	if again, err := EncodeEntry(e); err != nil || string(again) != string(b) {
		t.Errorf("the entry means something else today: %v", err)
	}
}

// And of what members agreed to understand.
func TestFixturesOfTheFirstLevels(t *testing.T) {
	b, err := EncodeEntry(Entry{Requests: []Request{{ID: "m1/1", Since: 3, Commands: levelCommands()}}})
	require.NoError(t, err)
	e, err := DecodeEntry([]byte(fixture(t, "testdata/v1/level_entry.json", string(b))))
	require.NoError(t, err)
	if again, err := EncodeEntry(e); err != nil || string(again) != string(b) {
		t.Errorf("the entry means something else today: %v", err)
	}
}

func fixture(t *testing.T, path, fresh string) string {
	t.Helper()
	if *update {
		if _, err := os.Stat(path); err == nil {
			t.Logf("%s is history and stays", path)
		} else if err := os.WriteFile(path, []byte(fresh), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}
