package daemon

import "saltclusterd/cmd/saltclusterd/wording"

func plural[N int | uint64](n N, noun string) string { return wording.Plural(n, noun) }

func oneOf[N int | uint64](n N, one, many string) string { return wording.Choose(n, one, many) }

func enumerate(names []string) string { return wording.Enumerate(names) }
