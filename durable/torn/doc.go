// Package torn tells whether a file in which a master keeps one value of msgpack is whole. After a power loss a file
// system has names whose content it never wrote: empty files, mostly, files of zeros, or files that were cut off.
//
// In: a name below an open directory. Out: its condition. It changes nothing, follows no link, and reads of a large
// file no more than it must. A leaf, so that the code that writes returns and the code that transfers them agree.
package torn
