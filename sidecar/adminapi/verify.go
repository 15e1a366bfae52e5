package adminapi

import "context"

// Verification is the answer of GET /v1/verify: what nodes hold, compared.
type Verification struct {
	From     string            `json:"from"` // the node that asked the others
	Sections []VerifiedSection `json:"sections"`
}

// Decided is how a verification calls the cluster's decision beside the nodes.
const Decided = "(cluster)"

// VerifiedSection is one sort of things that all nodes should hold.
type VerifiedSection struct {
	Name  string `json:"name"`  // keys, grains, pillar, mine, tokens, ...
	Items int    `json:"items"` // number of items on all nodes together, each counted once
	// items that changed during the comparison, and are not judged
	Moving      int                `json:"moving,omitempty"`
	Off         map[string]string  `json:"off,omitempty"`     // nodes that do not take part, and why
	Missing     map[string]string  `json:"missing,omitempty"` // nodes that could not be asked, and why
	Differences []VerifyDifference `json:"differences,omitempty"`
	More        int                `json:"more,omitempty"` // number of differences that are not listed
}

// VerifyDifference is an item in which nodes differ.
type VerifyDifference struct {
	Item  string            `json:"item"`
	Nodes map[string]string `json:"nodes"` // content on each node; empty: the node lacks the item
}

// Same says whether no section has a difference.
func (v Verification) Same() bool {
	for _, s := range v.Sections {
		if len(s.Differences) > 0 {
			return false
		}
	}
	return true
}

// Complete says whether all nodes could be asked.
func (v Verification) Complete() bool {
	for _, s := range v.Sections {
		if len(s.Missing) > 0 {
			return false
		}
	}
	return true
}

// Verify has the nodes compared.
func (c *Client) Verify(ctx context.Context) (Verification, error) {
	return getJSON[Verification](ctx, c, "/verify", nil)
}
