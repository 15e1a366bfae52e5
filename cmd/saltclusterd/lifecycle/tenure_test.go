package lifecycle

import "testing"

func TestTenure(t *testing.T) {
	tenure := NewTenure[int]()
	joined := func() bool {
		select {
		case <-tenure.Joined():
			return true
		default:
			return false
		}
	}
	one := 1
	for _, step := range []struct {
		name   string
		do     func()
		member *int
		joined bool
	}{
		{"new", func() {}, nil, false},
		{"a membership was written", tenure.NotifyJoined, nil, true},
		{"it was written again", tenure.NotifyJoined, nil, true},
		{"it runs", func() { tenure.Set(&one) }, &one, true},
		{"it has ended for good", tenure.AwaitJoin, &one, false},
		{"it is closed", func() { tenure.Set(nil) }, nil, false},
		{"another one", tenure.NotifyJoined, nil, true},
	} {
		step.do()
		if tenure.Current() != step.member || joined() != step.joined {
			t.Errorf("%s: member %v, joined %v", step.name, tenure.Current(), joined())
		}
	}
}
