package jobcache

import (
	"time"

	"saltclusterd/sidecar/saltvalue"
)

// Facts are what a plan depends on besides the load and the master's options.
type Facts struct {
	Received time.Time // when the load came in: _stamp and endtime
	// JID is from Cache.Assign when the load's jid is "req", the same one whenever the load is planned again; the whole id
	// when the load's was cut (saltwire.CutJID); else that of the load, or none.
	JID string
}

// Plan is what a load makes a master do. The slices are shared and must not be changed.
type Plan struct {
	Jobs    []Job
	Syndics []string // ids to mark in cachedir/syndics
	Events  []Event
	Reply   []byte // what the master's function returns, as msgpack: None or False
	Size    int    // about how many bytes it takes in memory
}

// Job is what is written for one return, in this order.
type Job struct {
	JID     string
	Known   bool   // a jid as Salt makes them: the job's directory gets a file "jid"
	NoCache bool   // and a file "nocache", which keeps returns out
	Load    []byte // .load.p, nil: none
	Replace bool   // also when there is a .load.p already
	Minions *[]string
	Minion  string // directory of the return, "": none
	Return  []byte // return.p
	Out     []byte // out.p, nil: none
	EndTime string // content of endtime, "": none
	Ahead   bool   // the return is kept for another node, which has yet to take it; see AheadFile
}

// Unasked says whether a minion returned what no job asked for (jid "req"): no client waits for it, and its job has no
// other writer.
func (p *Plan) Unasked() bool { return len(p.Jobs) == 1 && p.Jobs[0].Unasked() }

// Unasked is that of a single job.
func (j *Job) Unasked() bool { return j.Replace && j.Minion != "" }

// Event is fired on the master's bus.
type Event struct {
	Tag  string
	Data []byte // msgpack map with _stamp, trimmed to max_event_size
}

// Plan decides what a decrypted load makes the master do. It is pure. Errors: *NeedsPython when only the master itself
// can tell; ErrMalformed.
func (c *Cache) Plan(load []byte, f Facts) (Plan, error) {
	d, err := saltvalue.ParseLoad(load)
	if err != nil {
		return Plan{}, err
	}
	p := &planner{
		c: c, facts: f, stamp: rawText(c.formatStamp(f.Received)), plan: Plan{Reply: rawNil}, room: room(len(load)),
	}
	cmd, _ := d.Get("cmd")
	d, _ = d.Drop("nonce")
	d, _ = d.Drop("tok")
	switch name, _ := saltvalue.Text(cmd); name {
	case "_return":
		err = p.planReturn(d)
	case "_syndic_return":
		err = p.planSyndic(d)
	case "_minion_event":
		err = p.planEvent(d)
	default:
		err = needs("command %q is neither a return nor an event", name)
	}
	if err != nil {
		return Plan{}, err
	}
	p.plan.Size = room(len(load)) - p.room
	return p.plan, nil
}

// planner collects the plan of one load.
type planner struct {
	c     *Cache
	facts Facts
	stamp []byte
	plan  Plan
	room  int // bytes that the plan may still take
}

// entry is about what an event or a job takes beside its bytes.
const entry = 128

// room is how much a plan may take. Of a usual return it is three or four times the load; of one with many failed
// states three times as much again.
func room(load int) int { return 4*load + min(12*load, 32<<20) + 1<<20 }

// takeRoom counts what a plan takes. A load says once what is put into each event and file of many: it could fill the
// memory.
func (p *planner) takeRoom(n int) error {
	if p.room -= n; p.room < 0 {
		return needs("a load that makes many times its size")
	}
	return nil
}

// maxEvent is the largest event that is fired here, in bytes. A master closes the connection on which more than 100 MiB
// come at once, and those of all minions share ours: it would be offered again and again, before all others.
const maxEvent = 64 << 20

func (p *planner) planFire(tag string, raw []byte) error {
	if err := p.takeRoom(entry + len(tag) + len(raw)); err != nil {
		return err
	}
	data, err := trimEvent(raw, p.c.maxEvent)
	if err != nil {
		return err
	}
	if len(data) > maxEvent {
		return needs("an event of %d bytes", len(data))
	}
	p.plan.Events = append(p.plan.Events, Event{tag, data})
	return nil
}

func (p *planner) addJob(job Job) error {
	p.plan.Jobs = append(p.plan.Jobs, job)
	n := entry + len(job.Load) + len(job.Return) + len(job.Out)
	if job.Minions != nil {
		n += len(*job.Minions) * 16
	}
	return p.takeRoom(n)
}
