package tree

import "strings"

// Replace returns a directory that has something else at some paths; nil: nothing. Paths that it does not have are left
// out. New objects go into put.
func Replace(o Objects, put Memory, dir Hash, at map[string]*Entry) (Hash, error) {
	if len(at) == 0 {
		return dir, nil
	}
	here, below := map[string]*Entry{}, map[string]map[string]*Entry{}
	for path, e := range at {
		name, rest, deeper := strings.Cut(path, "/")
		if !deeper {
			here[name] = e
			continue
		}
		if below[name] == nil {
			below[name] = map[string]*Entry{}
		}
		below[name][rest] = e
	}
	entries, err := ReadDir(Both{put, o}, dir)
	if err != nil {
		return Hash{}, err
	}
	out := make([]Entry, 0, len(entries))
	for _, e := range entries {
		if other, ok := here[e.Name]; ok {
			if other == nil {
				continue
			}
			name := e.Name
			e = *other
			e.Name = name
		} else if e.Type == Dir {
			if e.Object, err = Replace(o, put, e.Object, below[e.Name]); err != nil {
				return Hash{}, err
			}
		}
		out = append(out, e)
	}
	return put.PutDir(out)
}
