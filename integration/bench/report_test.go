package main

import "testing"

func TestMerge(t *testing.T) {
	const old = "\n## A\n\nold a\n\nrun 1\n\n## B 5\n\nold b\n\nrun 1\n"
	const news = "\n## C\n\nnew c\n\n## A\n\nnew a\n"
	const want = "\n## A\n\nnew a\n\nrun 2\n\n## B 5\n\nold b\n\nrun 1\n\n## C\n\nnew c\n\nrun 2\n"
	if got := merge(old, news, "run 2"); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := merge("\n", "", "run 3"); got != "" {
		t.Errorf("nothing of nothing is %q", got)
	}
}
