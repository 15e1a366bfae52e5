package config

import (
	"cmp"
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
	appliedAtJoin  = "Takes effect with a reload; it is used when a node joins."
	appliedAddress = "Takes effect with a reload, or with a restart when the new address overlaps the old one " +
		"(127.0.0.1:4580 and 0.0.0.0:4580)."
	appliedMoved = "Takes effect with a restart, before which the content of the directory must be moved."
)

// applied says how a change of the option takes effect.
func (o Option) applied() string { return cmp.Or(o.Applied, "Takes effect with a reload.") }

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
