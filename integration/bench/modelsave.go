package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// save writes a file unless it has no name.
func (s *modelSeen) save(name string) error {
	if name == "" {
		return nil
	}
	raw, err := json.MarshalIndent(s, "", "\t")
	if err == nil {
		err = os.WriteFile(name, raw, 0o644)
	}
	if err != nil {
		return fmt.Errorf("save what was measured: %w", err)
	}
	return nil
}

// readSeen reads what a run has saved. What an older program has saved may lack what is looked at today: taken for noughts, that would cost
// nothing, and the comparison would mean nothing.
func readSeen(name string) (*modelSeen, error) {
	seen := &modelSeen{}
	raw, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(raw, seen)
	}
	if err != nil {
		return nil, err
	}
	again, err := json.Marshal(seen)
	if err != nil {
		return nil, err
	}
	var had, has any
	if err := errors.Join(json.Unmarshal(raw, &had), json.Unmarshal(again, &has)); err != nil {
		return nil, err
	}
	lacks := append(lacking("", had, has), seen.Machine.free()...)
	slices.Sort(lacks)
	if lacks = slices.Compact(lacks); len(lacks) > 0 {
		return nil, fmt.Errorf("%s was saved by an older program, which did not measure %s: measure anew, without -against", name, strings.Join(lacks, ", "))
	}
	return seen, nil
}

// lacking names what has is made of and had is not.
func lacking(name string, had, has any) (lacks []string) {
	switch has := has.(type) {
	case map[string]any:
		had, _ := had.(map[string]any)
		for key, value := range has {
			inner := strings.TrimPrefix(name+"."+key, ".")
			if was, ok := had[key]; ok {
				lacks = append(lacks, lacking(inner, was, value)...)
			} else {
				lacks = append(lacks, inner)
			}
		}
	case []any:
		had, _ := had.([]any)
		for i, value := range has {
			if i < len(had) {
				lacks = append(lacks, lacking(name, had[i], value)...)
			}
		}
	}
	return lacks
}

// free names what costs nothing on no machine: an older program's file to which a newer one has added a herd says so of what was not measured.
// A file system in memory may sync for nothing.
func (m machine) free() (names []string) {
	for name, d := range map[string]time.Duration{
		"Sign": m.Sign, "Fsync": m.Fsync, "FsyncBusy": m.FsyncBusy, "Check": m.Check, "Return": m.Return, "Copy": m.Copy, "Pace": m.Pace,
	} {
		if d <= 0 {
			names = append(names, "Machine."+name)
		}
	}
	return names
}
