package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
)

const (
	chunkSize  = 1 << 20 // file_buffer_size of stock masters
	fileChunks = 64      // of the file that is fetched: more than saltclusterd keeps in memory
	hashFiles  = 50
	hashSize   = 64 << 10

	chunkGoal = 0.35 // of the bare master's CPU
	hashGoal  = 0.2
)

// fileKind is one kind of request for files.
type fileKind struct {
	name   string
	cmd    string
	count  int
	goal   float64
	fields func(i int) map[string]any
}

func (b *bench) fileKinds() []fileKind {
	chunk := func(more map[string]any) func(i int) map[string]any {
		return func(i int) map[string]any {
			f := map[string]any{"path": "bench/big", "saltenv": "base", "loc": i % fileChunks * chunkSize}
			for k, v := range more {
				f[k] = v
			}
			return f
		}
	}
	return []fileKind{
		{"`_serve_file`, a chunk of 1 MiB", "_serve_file", b.chunks, chunkGoal, chunk(nil)},
		{"`_serve_file`, the same chunk for all", "_serve_file", b.chunks, chunkGoal, func(int) map[string]any { return chunk(nil)(0) }},
		{"`_file_hash`, 64 KiB", "_file_hash", b.hashes, hashGoal, func(i int) map[string]any {
			return map[string]any{"path": fmt.Sprint("bench/", i%hashFiles), "saltenv": "base"}
		}},
		{"`_file_list`, 52 files", "_file_list", b.hashes, hashGoal, func(int) map[string]any { return map[string]any{"saltenv": "base"} }},
	}
}

// files compares what file serving costs.
func (b *bench) files(ctx context.Context) error {
	minions, err := newMinions(b.minions)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, version := range []string{"3006.28", "3008.3"} {
		if err := b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
			more, err := b.filesOf(ctx, l, version, minions)
			rows = append(rows, more...)
			return err
		}); err != nil {
			return err
		}
	}
	b.out.table("Files", fmt.Sprintf("CPU milliseconds per request, whole process trees. %d chunks and %d others per side and round, 4 at a time; each reply "+
		"is opened and its length looked at. The file of %d MiB is larger than what saltclusterd keeps in memory.", b.chunks, b.hashes, fileChunks),
		[]string{"Salt", "request", "master alone", "behind saltclusterd", "of it the master", "ratio", "target", ""}, rows)
	return nil
}

func (b *bench) filesOf(ctx context.Context, l *lab.Lab, version string, minions []*herd.Identity) (rows [][]string, err error) {
	b.say("files of Salt %s, alone and behind saltclusterd", version)
	bare, err := bareMaster(ctx, l, "bare", version, minions, b.fleet)
	if err != nil {
		return nil, err
	}
	ours, err := clusterNode(ctx, l, "ours", version, minions, b.fleet)
	if err != nil {
		return nil, err
	}
	for _, t := range []*target{bare, ours} {
		if err := writeFiles(filepath.Join(t.master.Host().Dir(), "srv/salt")); err != nil {
			return nil, err
		}
		if err := t.enroll(ctx, minions); err != nil {
			return nil, err
		}
	}
	kinds := b.fileKinds()
	for _, t := range []*target{bare, ours} { // a master that has started keeps its first list for 20 s (fileserver_list_cache_time)
		list := kinds[len(kinds)-1]
		list.count = 1
		err := lab.Eventually(ctx, time.Minute, "the files to be in the list of "+t.name, func(ctx context.Context) error {
			_, err := t.askFiles(ctx, list)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, kind := range kinds {
		var alone, through, master series
		for round := range b.sizes.rounds + 1 {
			for _, t := range []*target{bare, ours} {
				u, err := t.askFiles(ctx, kind)
				if err != nil {
					return nil, err
				}
				switch n := float64(kind.count); {
				case round == 0: // warms up
				case t == bare:
					alone.add(millis(u.sum()) / n)
				default:
					through.add(millis(u.sum()) / n)
					master.add(millis(u.master) / n)
				}
			}
		}
		ratio := through.over(alone)
		rows = append(rows, []string{
			version, kind.name, alone.show("%.2f"), through.show("%.2f"), master.show("%.2f"), "**" + ratio.show("%.2f") + "**",
			fmt.Sprintf("≤ %.2f", kind.goal), atMost(ratio, kind.goal),
		})
	}
	return rows, nil
}

// writeFiles makes what is fetched.
func writeFiles(root string) error {
	dir := filepath.Join(root, "bench")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write files: %w", err)
	}
	data := make([]byte, fileChunks*chunkSize)
	_, _ = rand.Read(data)
	if err := os.WriteFile(filepath.Join(dir, "big"), data, 0o644); err != nil {
		return fmt.Errorf("write files: %w", err)
	}
	for i := range hashFiles {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), data[i*hashSize:][:hashSize], 0o644); err != nil {
			return fmt.Errorf("write files: %w", err)
		}
	}
	return nil
}

// askFiles sends the requests of one round and tells what the target used.
func (t *target) askFiles(ctx context.Context, kind fileKind) (used, error) {
	return t.askMany(ctx, kind.cmd, kind.count, atATime, kind.fields, func(s *sealed) error {
		plain, err := s.by.Open(s.reply, s.nonce)
		if err != nil {
			return err
		}
		if short := len(plain) < 64; short || kind.cmd == "_serve_file" && len(plain) < chunkSize {
			return fmt.Errorf("%s answered with %d bytes", kind.cmd, len(plain))
		}
		return nil
	})
}
