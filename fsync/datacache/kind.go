package datacache

// Kind is which data of minions a Store carries. Kinds have stamps, tables and paths of their own: news of one kind do
// not race with news of the other.
type Kind uint8

const (
	Data Kind = iota // grains and pillars
	Mine             // what minions tell each other
)

// String names the kind for logs and metrics.
func (k Kind) String() string {
	if k == Mine {
		return "mine"
	}
	return "data"
}

// Path is where the handler belongs.
func (k Kind) Path() string {
	if k == Mine {
		return "/v1/minion-mine"
	}
	return "/v1/minion-data"
}

// table is the name of the table's file.
func (k Kind) table() string {
	if k == Mine {
		return "minion-mine.json"
	}
	return "minion-data.json"
}

// records is what records of the kind are called in a body.
func (k Kind) records() byte {
	if k == Mine {
		return kindMines
	}
	return kindRecords
}

// maxPillars is how many pillars a record of the kind may have.
func (k Kind) maxPillars() uint64 {
	if k == Mine {
		return 0
	}
	return maxPillars
}
