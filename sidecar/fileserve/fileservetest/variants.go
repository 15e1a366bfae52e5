package fileservetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
)

// pieces are what variants are made of: whatever has a meaning to any code that handles a path.
var pieces = []string{
	"/", "//", ".", "..", "../", "./", "a", "B", "0", "~", "*", "[a]", "?", "|", ":", "://", "salt://", "&", "=", "#",
	"%2e", "\\", " ", "\n", "\x00",
	"\x7f", "é", "日", "\xff", "\u2028", "dir", "link", "one", "base", "dev", "__env__", "saltenv=", ".bak", ".git",
}

// Variants are requests of the corpus with texts and numbers changed at random, the same for the same seed.
func Variants(seed uint64, count int) []Ask {
	r := rand.New(rand.NewPCG(seed, 1))
	base := asks()
	out := make([]Ask, 0, count)
	for i := range count {
		one := base[r.IntN(len(base))]
		load := maps.Clone(one.Fields)
		if load["saltenv"] == Unlistable {
			load["saltenv"] = "dev"
		}
		for _, key := range []string{"path", "saltenv", "prefix"} {
			if text, ok := load[key].(string); ok && r.IntN(2) == 0 {
				load[key] = vary(r, text)
			}
		}
		if loc, ok := load["loc"].(int); ok && r.IntN(3) == 0 {
			load["loc"] = loc + r.IntN(9000) - 10
		}
		out = append(out, newAsk(fmt.Sprintf("variant %d: %s %.200q", i, one.Cmd, fmt.Sprint(load)), one.Cmd, load))
	}
	return out
}

// vary puts pieces into a text and takes some of it away.
func vary(r *rand.Rand, text string) string {
	for range 1 + r.IntN(3) {
		at := r.IntN(len(text) + 1)
		switch r.IntN(3) {
		case 0:
			text = text[:at]
		default:
			text = text[:at] + pieces[r.IntN(len(pieces))] + text[at:]
		}
	}
	return text
}
