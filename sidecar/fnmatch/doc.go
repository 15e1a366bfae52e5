// Package fnmatch matches names against globs exactly as Python's fnmatch.fnmatchcase does. Salt uses this for the
// targets of a job and the tags of a reactor.
//
// In: a glob of '*', '?', '[seq]' and '[!seq]', where '*' matches '/' like any other character. Out: a regular
// expression. Promise: matching takes time linear in the length of the name, whatever the glob.
package fnmatch
