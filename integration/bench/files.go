package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"saltclusterd/integration/lab"
)

const (
	chunkSize  = 1 << 20 // file_buffer_size of stock masters
	fileChunks = 64      // of the large file: more than saltclusterd keeps in memory
	smallFiles = 50
	smallSize  = 64 << 10
	listWithin = time.Minute // a master keeps its first list for 20 s (fileserver_list_cache_time)

	chunkGoal = 0.35 // of the CPU of a master alone
	hashGoal  = 0.2
)

// fileKind is one kind of request for files.
type fileKind struct {
	name string
	goal float64
	load
}

func (b *bench) fileKinds() []fileKind {
	chunks, others := pick(b, 192, 96), pick(b, 1000, 300)
	chunk := func(i int) map[string]any {
		return map[string]any{"path": "bench/big", "saltenv": "base", "loc": i % fileChunks * chunkSize}
	}
	hash := func(i int) map[string]any {
		return map[string]any{"path": fmt.Sprint("bench/", i%smallFiles), "saltenv": "base"}
	}
	list := func(int) map[string]any { return map[string]any{"saltenv": "base"} }
	first := func(int) map[string]any { return chunk(0) }
	return []fileKind{
		{"`_serve_file`, a chunk of 1 MiB", chunkGoal, load{"_serve_file", chunks, atATime, 0, chunk, chunkSize}},
		{"`_serve_file`, the same chunk for all", chunkGoal, load{"_serve_file", chunks, atATime, 0, first, chunkSize}},
		{"`_file_hash`, 64 KiB", hashGoal, load{"_file_hash", others, atATime, 0, hash, 64}},
		{"`_file_list`, 52 files", hashGoal, load{"_file_list", others, atATime, 0, list, 64}},
	}
}

// files compares the CPU of file serving.
func (b *bench) files(ctx context.Context) error {
	var rows [][]string
	err := b.versus(ctx, versions, func(ctx context.Context, bare, ours *target) error {
		kinds := b.fileKinds()
		for _, t := range []*target{bare, ours} {
			if err := t.writeFiles(ctx, kinds[len(kinds)-1].load); err != nil {
				return err
			}
		}
		for _, k := range kinds {
			alone, behind, err := b.turns(bare, ours, k.count, func(t *target) (used, error) {
				u, _, err := t.ask(ctx, k.load)
				return u, err
			})
			if err != nil {
				return err
			}
			ratio := behind.over(alone)
			rows = append(rows, append([]string{
				bare.version, k.name, alone.all.show("%.2f"), behind.all.show("%.2f"), behind.master.show("%.2f"),
				ratio.bold("%.2f"),
			}, judged(ratio, "%.2f", k.goal)...))
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.table("Files", fmt.Sprintf("CPU milliseconds per request, whole process trees, %d at a time. Each reply is "+
		"decrypted and its length checked. The file has %d MiB, more than saltclusterd keeps in memory.", atATime, fileChunks),
		[]string{"Salt", "request", "master alone", "behind saltclusterd", "of that, the master", "ratio", "target", ""}, rows)
	return nil
}

// writeFiles makes what is fetched, and waits until it is in the list.
func (t *target) writeFiles(ctx context.Context, list load) error {
	dir := filepath.Join(t.salt.FileRoot(), "bench")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write files: %w", err)
	}
	data := make([]byte, fileChunks*chunkSize)
	_, _ = rand.Read(data)
	if err := os.WriteFile(filepath.Join(dir, "big"), data, 0o644); err != nil {
		return fmt.Errorf("write files: %w", err)
	}
	for i := range smallFiles {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), data[i*smallSize:][:smallSize], 0o644); err != nil {
			return fmt.Errorf("write files: %w", err)
		}
	}
	list.count, list.conns = 1, 1
	list.least = 8 * smallFiles // "bench/NN"
	return lab.Eventually(ctx, listWithin, "the files to be in the list of "+t.name, func(ctx context.Context) error {
		_, _, err := t.ask(ctx, list)
		return err
	})
}
