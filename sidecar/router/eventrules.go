package router

import (
	"fmt"
	"regexp"

	"saltclusterd/sidecar/fnmatch"
)

// EventRoute says on whose bus an event of a minion fires.
type EventRoute uint8

// The routes of events. An event that belongs to a job fires where that was published under Owner and Origin: the CLI
// that waits for it listens there.
const (
	Owner   EventRoute = iota // the ring's owner of the minion
	Origin                    // the node that the minion sent it to
	Leader                    // the leader of the cluster
	Masters                   // every master
)

var eventRoutes = map[string]EventRoute{"owner": Owner, "origin": Origin, "leader": Leader, "all": Masters}

// EventRouteNames are what ParseEventRoute takes.
var EventRouteNames = []string{"owner", "origin", "all", "leader"}

// EventRule gives the tags that a glob matches to a route.
type EventRule struct {
	Tag   string // as a reactor's: '*' passes over '/'
	Route string
}

// EventRules are rules in their order: the first that matches decides. A nil one has no rules.
type EventRules struct{ rules []eventRule }

type eventRule struct {
	tag   *regexp.Regexp
	route EventRoute
	text  EventRule
}

// NewEventRules compiles rules.
func NewEventRules(rules []EventRule) (*EventRules, error) {
	r := &EventRules{}
	for _, rule := range rules {
		re, err := fnmatch.Compile(rule.Tag)
		if err != nil {
			return nil, err
		}
		route, ok := eventRoutes[rule.Route]
		if !ok {
			return nil, fmt.Errorf("events %q: %q is not a route", rule.Tag, rule.Route)
		}
		r.rules = append(r.rules, eventRule{re, route, rule})
	}
	return r, nil
}

// Route says where events of a tag fire.
func (r *EventRules) Route(tag string) EventRoute {
	if rule, ok := r.findRule(tag); ok {
		return rule.route
	}
	return Owner
}

// findRule returns the rule that decides about a tag.
func (r *EventRules) findRule(tag string) (eventRule, bool) {
	if r != nil {
		for _, rule := range r.rules {
			if rule.tag.MatchString(tag) {
				return rule, true
			}
		}
	}
	return eventRule{}, false
}

func (r *EventRules) isEmpty() bool { return r == nil || len(r.rules) == 0 }
