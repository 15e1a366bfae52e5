package adminapi

import "testing"

func TestNextKeys(t *testing.T) {
	key := func(id, state string) MinionKey { return MinionKey{ID: id, State: state} }
	a, b, denied := key("a", KeyAccepted), key("b", KeyPending), key("aa", KeyDenied)
	for name, tt := range map[string]struct {
		keys Keys
		q    KeyQuery
		want string
		ok   bool
	}{
		"all are there":            {Keys{Keys: []MinionKey{a, b}}, KeyQuery{}, "", false},
		"more":                     {Keys{Keys: []MinionKey{a, b}, More: 1}, KeyQuery{}, "b", true},
		"more, behind a":           {Keys{Keys: []MinionKey{b}, More: 1}, KeyQuery{After: "a"}, "b", true},
		"more denied ones":         {Keys{Keys: []MinionKey{a, b, denied}, More: 1}, KeyQuery{}, "b", true},
		"denied ones only":         {Keys{Keys: []MinionKey{denied}, More: 1}, KeyQuery{}, "", false},
		"none":                     {Keys{More: 1}, KeyQuery{}, "", false},
		"a daemon that goes round": {Keys{Keys: []MinionKey{a, b}, More: 1}, KeyQuery{After: "b"}, "b", false},
		"a history":                {Keys{Keys: []MinionKey{a, b}, More: 1}, KeyQuery{History: true}, "", false},
	} {
		if q, ok := tt.keys.Next(tt.q); q.After != tt.want || ok != tt.ok {
			t.Errorf("%s: after %q, %v", name, q.After, ok)
		}
	}
}
