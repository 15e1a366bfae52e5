// Package guides takes out of README.md, docs/ and the other pages what an operator would type, so that tests can try
// it.
//
// A command is any line or `code` that begins with the name of a program: cmd/saltclusterctl's tests parse every one of
// saltclusterctl, and fail when a page names a verb or a flag that there is not.
//
// A runnable block is a fenced one whose first line says more than its language, which GitHub does not show:
//
//	```sh runnable=site on=m1 within=1m
//	saltclusterctl status --check     # what follows a # is for the reader
//	```
//
// runnable= names the stage, where the blocks of all pages are run in the order of Read:
//
//	plain   a directory with a node's configuration, and no saltclusterd that runs (cmd/saltclusterctl: TestGuidesPlain)
//	site    a salt-master on m1 with minions web1 and web2, fresh ones on m2 and m3, HAProxy on lb (scenario TestDocs)
//	end     the same site, after all its other blocks
//
// The block is one script of bash -e -o pipefail. on= is the host (m1 unless told otherwise), answer= what is typed
// when it asks (a comma separates answers; TOKEN is what token create has printed for the host), exit= its exit code,
// within= the time in which it is tried again until it does what it shall. A block
// that begins with ```text shows and follows it holds words that must appear in what it prints, in this order: what
// stands between "…" and between runs of two or more spaces on each line. Addresses, paths and capitals that stand for
// something are those of the stage.
package guides
