package adminapi

// RingQuery asks for the owner of one key; at most one field may be set. Both
// empty: only the nodes are wanted.
type RingQuery struct {
	Minion string `json:"minion,omitempty"`
	JID    string `json:"jid,omitempty"`
}

// Validate refuses a query for two keys at once.
func (q RingQuery) Validate() error {
	if q.Minion != "" && q.JID != "" {
		return &Error{
			Code: CodeInvalid, Message: "a ring query takes a minion id or a jid, not both",
			Hint: "use --minion or --jid",
		}
	}
	return nil
}

// RingInfo is the answer of GET /v1/ring.
type RingInfo struct {
	Nodes []RingNode `json:"nodes"` // sorted by id
	Owner *RingOwner `json:"owner,omitempty"`
}

// RingNode is one node of the ring.
type RingNode struct {
	ID       string  `json:"id"`
	State    State   `json:"state"`
	Weight   float64 `json:"weight"`
	Share    float64 `json:"share"` // part of the keys that the node owns, 0..1
	Draining bool    `json:"draining,omitempty"`
}

// Kinds of a RingOwner's key and reasons for its node.
const (
	KeyMinion = "minion"
	KeyJID    = "jid"

	OwnerByRing      = "ring"      // by hash
	OwnerByPublisher = "publisher" // the node that published the jid, as remembered here
)

// RingOwner says who is responsible for one key.
type RingOwner struct {
	Kind string   `json:"kind"` // minion or jid
	Key  string   `json:"key"`
	Node string   `json:"node"`           // node that is responsible; empty: none can be
	By   string   `json:"by"`             // ring (by hash), or publisher (the node that published the jid)
	Next []string `json:"next,omitempty"` // nodes that would take over, in order
}
