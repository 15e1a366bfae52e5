package hostile

// List describes the first requests of a seed, or one of them: as they would be, but for ids and jobs, which follow
// from the cluster.
func List(seed uint64, only int) (out []string) {
	s := &scene{seed: seed, own: ownPrefix + "x", others: []string{"min1", "min2"}, nodes: []string{"m1"},
		jids: []string{"20260101120000000000"}, outside: "/outside"}
	if only >= 0 {
		r := s.request(only)
		out = append(out, r.String())
		for _, f := range r.fields {
			out = append(out, "  "+clip(quote(f.key))+" = "+clip(quote(f.value)))
		}
		return out
	}
	for n := range 100 {
		out = append(out, s.request(n).String())
	}
	return out
}
