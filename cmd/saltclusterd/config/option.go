package config

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Option is one row of the table.
type Option struct {
	Name    string
	Section string // heading in the default file; repeated by every row of it
	Doc     string // sentences for the operator; wrapped when printed
	Example string // YAML shown in the default file when the default says too little
	Applied string // a sentence: how a change takes effect; empty: with a reload

	field func(*Config) any            // pointer to the place in Config
	check func(any) (msg, hint string) // of the value at field; may be nil
}

// How a change of an option takes effect, where a reload is not all.
const (
	appliedNever   = "Cannot change once the node has joined."
	appliedAtJoin  = "Used only when a node joins."
	appliedAddress = "Needs a restart if it overlaps the old one."
	appliedMoved   = "To change it: stop, move the content, start."
)

// Options returns the table in the order of the default file.
func Options() []Option {
	return slices.Concat(identityOptions(), clusterOptions(), eventOptions(), edgeOptions(), limitOptions(), wallOptions(),
		signInOptions(), saltOptions(), rootsOptions(), pathOptions(), healthOptions())
}

// Names returns the names of all options, in table order.
func Names() []string {
	var names []string
	for _, o := range Options() {
		names = append(names, o.Name)
	}
	return names
}

// currentValue returns what c holds for the option, without the pointer.
func (o Option) currentValue(c *Config) any {
	switch p := o.field(c).(type) {
	case *string:
		return *p
	case *int:
		return *p
	case *bool:
		return *p
	case *Size:
		return *p
	case *time.Duration:
		return *p
	case *Secret:
		return *p
	case *[]string:
		return *p
	case *[]netip.Prefix:
		return *p
	case *map[string][]netip.Prefix:
		return *p
	case *map[string]string:
		return *p
	case *[]TagRule:
		return *p
	default:
		panic(fmt.Sprintf("config: option %s has a field of unknown type %T", o.Name, p)) // caught by the table's test
	}
}
