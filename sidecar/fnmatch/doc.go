// Package fnmatch matches names against globs exactly as Python's fnmatch.fnmatchcase does, which is how Salt reads the
// targets of a job and the tags of a reactor.
//
// In: a glob of '*', '?', '[seq]' and '[!seq]', where '*' passes over '/' as over anything else. Out: a regular
// expression. Promise: matching costs time linear in the name, whatever the glob.
package fnmatch
