package parity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"saltclusterd/integration/lab"
)

// Minions of the script: one of each version.
const (
	min06 = "min06-1"
	min07 = "min07-1"
	min08 = "min08-1"
)

var (
	jidPattern = regexp.MustCompile(`\b20\d{18}(_\d+)?\b`)
)

// Script is everything that is compared, in this order.
func Script() []Step {
	var all []Step
	for _, part := range [][]Step{
		keySteps(), targetSteps(), functionSteps(), jobSteps(), stateSteps(), fileSteps(), mineSteps(), minionSteps(),
		runnerSteps(), moduleSteps(), scheduleSteps(), timeoutSteps(),
	} {
		all = append(all, part...)
	}
	for i := range all {
		all[i].More = slices.Contains(variations, all[i].Name) || strings.HasSuffix(all[i].Name, " on "+min08) &&
			all[i].On != ""
	}
	return all
}

// variations are steps of which another one makes the same kinds of requests: the short script does without.
var variations = []string{
	"accepted keys", "fingerprint of a key", "accept a key nobody has",
	"ping one", "ping regular expression", "ping compound with not", "ping nodegroup nobody has", "ping one, verbose",
	"ping summary",
	"ping as text", "ping as yaml, static",
	"exception", "wrong arguments", "command", "command that fails, as people see it", "command that fails, code",
	"batch in percent",
	"batch, failhard", "grains", "pillar get", "pillar as people see it",
	"look up the job as people see it", "job's success", "print the job", "a job nobody started",
	"highstate", "highstate as people see it", "single state", "single state that fails", "show a state", "show top",
	"orchestrate as people see it", "orchestrate what nobody wrote",
	"directories of the master", "states of the master", "environments", "hash of a file", "cache a file",
	"mine: get of a list", "mine: get what nobody sent", "mine: get by runner",
	"saltutil: refresh grains", "saltutil: refresh modules", "saltutil: find a job nobody started",
	"saltutil: kill a job nobody started", "saltutil: is running", "sys: functions",
	"call: a function nobody has on " + min06, "call: event on " + min06, "call: pillar on " + min06,
	"call: ping on " + min06,
	"call: text of a file on " + min06, "call: runner that is not allowed on " + min06, "call: pillar as people see it",
	"status", "versions", "environments by runner", "a runner nobody has", "who is down",
	"schedule: disable a job", "schedule: delete again",
}

// MasterSettings and MinionSettings are what the script needs on both sides.
func MasterSettings() lab.Settings {
	return lab.Settings{
		"nodegroups": map[string]string{"old": "L@" + min06 + "," + min07, "new": min08},
		"peer":       map[string][]string{".*": {"test.*", "grains.get"}},
		"peer_run":   map[string][]string{".*": {"manage.up", "jobs.lookup_jid"}},
		"file_recv":  true,
		// What minions push is served to others.
		"fileserver_backend": []string{"roots", "minionfs"},
		// Longer than the default 5 s: with two slow cores a job that is only late must not look like one that is lost.
		"timeout": 15, "gather_job_timeout": 15,
		// As behind saltclusterd, which tells by it whose job a return belongs to.
		"master_id": "m1",
	}
}

// salt makes a step that runs the salt command with JSON output.
func salt(name string, args ...string) Step {
	return Step{Name: name, Argv: append([]string{"salt", "--out=json"}, args...)}
}

// Batches print which minions they have picked, and those in any order; on a slow machine also that an answer came to
// their question for running jobs after the job's own.
var batchTalk = []*regexp.Regexp{
	regexp.MustCompile(`^Executing run on \[`),
	regexp.MustCompile(`^minion \S+ was already deleted from tracker, probably a duplicate key$`),
}

// anyOrder makes a step whose lines are compared as a set.
func anyOrder(s Step) Step {
	s.Lines, s.Drop = true, append(s.Drop, batchTalk...)
	return s
}

// text makes a step whose output is compared as people see it.
func text(name, tool string, args ...string) Step {
	return Step{Name: name, Argv: append([]string{tool}, args...)}
}

func run(name string, args ...string) Step {
	return Step{Name: name, Argv: append([]string{"salt-run", "--out=json"}, args...)}
}

func call(minion, name string, args ...string) Step {
	return Step{Name: name + " on " + minion, On: minion, Argv: append([]string{"salt-call", "--out=json"}, args...)}
}

func keySteps() []Step {
	return []Step{
		{Name: "keys as json", Argv: []string{"salt-key", "-L", "--out=json"}},
		text("keys as people see them", "salt-key", "-L"),
		text("accepted keys", "salt-key", "-l", "acc"),
		text("fingerprint of a key", "salt-key", "-f", min06),
		text("accept a key nobody has", "salt-key", "-y", "-a", "nobody"),
	}
}

func targetSteps() []Step {
	ping := func(name string, args ...string) Step { return salt("ping "+name, append(args, "test.ping")...) }
	return []Step{
		ping("all", "*"), ping("glob", "min0[67]-*"), ping("one", min07),
		ping("list", "-L", min06+","+min08), ping("regular expression", "-E", "min0(6|8)-1"),
		ping("compound", "-C", "min06-* or L@"+min08), ping("compound with not", "-C", "* and not E@min06.*"),
		ping("nodegroup", "-N", "old"), ping("nodegroup nobody has", "-N", "nosuch"),
		ping("nobody", "nobody*"), ping("list with a stranger", "-L", min06+",nobody"),
		ping("one, static", "--static", "*"), ping("one, verbose", "-v", min06), ping("summary", "--summary", "*"),
		text("ping as people see it", "salt", "*", "test.ping"),
		text("ping as text", "salt", "--out=txt", "*", "test.ping"),
		text("ping as yaml, static", "salt", "--static", "--out=yaml", "*", "test.ping"),
		ping("grain", "-G", "lab_version:3006"), ping("grain, all", "-G", "kernel:Linux"),
		ping("grain by expression", "-P", "lab_version:300[78]"),
		ping("compound with grain", "-C", "G@lab_version:3007 or "+min08),
		ping("pillar", "-I", "demo:for:"+min07), ping("subnet", "-S", "127.0.0.0/8"),
	}
}

func functionSteps() []Step {
	return []Step{
		salt("echo", "*", "test.echo", "a b ü€😀"),
		salt("keyword arguments", "*", "test.arg", "1", "two", "list=[1, 2]", "flag=True", "map={a: 1}"),
		salt("exception", "*", "test.exception", "message=so it goes"),
		salt("function nobody has", "*", "nosuch.function"),
		salt("wrong arguments", "*", "test.echo"),
		salt("two functions", "*", "test.ping,test.echo", ",", "x"),
		salt("command", "*", "cmd.run", "echo out; echo err >&2"),
		salt("command that fails", "*", "cmd.run", "exit 3"),
		text("command that fails, as people see it", "salt", min06, "cmd.run", "echo no; exit 3"),
		salt("command that fails, code", "*", "cmd.retcode", "exit 3"),
		salt("big answer", min06, "cmd.run", "head -c 300000 /dev/zero | tr '\\0' x"),
		anyOrder(salt("batch of one", "-b", "1", "*", "test.ping")),
		anyOrder(salt("batch in percent", "-b", "50%", "*", "test.arg", "1")),
		anyOrder(salt("batch that fails", "-b", "2", "*", "cmd.run", "exit 3")),
		salt("batch, failhard", "-b", "1", "--failhard", "min06*", "cmd.run", "exit 3"),
		salt("grains", "*", "grains.item", "id", "kernel", "lab_version"),
		salt("pillar items", "*", "pillar.items"),
		salt("pillar get", "*", "pillar.get", "demo:for"),
		text("pillar as people see it", "salt", min07, "pillar.items"),
		salt("pillar override", "*", "pillar.items", "pillar={more: 1}"),
	}
}

func jobSteps() []Step {
	async := Step{
		Name: "async", Argv: []string{"salt", "--async", "*", "test.arg", "async"}, Keep: "jid", Find: jidPattern,
	}
	lookup := run("look up the job", "jobs.lookup_jid", "{jid}")
	list := run("list the job", "jobs.list_job", "{jid}")
	list.Before = allReturned
	return []Step{
		async, list, lookup,
		text("look up the job as people see it", "salt-run", "jobs.lookup_jid", "{jid}"),
		run("job's success", "jobs.exit_success", "{jid}"),
		run("print the job", "jobs.print_job", "{jid}"),
		run("a job nobody started", "jobs.lookup_jid", "20200101000000000000"),
		salt("with metadata", "--metadata", `{"parity": "yes"}`, "*", "test.ping"),
		run("find by metadata", "jobs.list_jobs", `search_metadata={"parity": "yes"}`),
		run("jobs now", "jobs.active"),
	}
}

// allReturned waits until the master's job cache has every minion's return of the kept job.
func allReturned(ctx context.Context, s *Subject) error {
	return lab.Eventually(ctx, time.Minute, "all returns of job "+s.kept["jid"], func(ctx context.Context) error {
		res, err := s.Master.Run(ctx, "salt-run", "--out=json", "jobs.lookup_jid", s.kept["jid"])
		if err != nil {
			return err
		}
		for _, m := range s.Minions {
			if !regexp.MustCompile(regexp.QuoteMeta(m.ID)).MatchString(res.Stdout) {
				return fmt.Errorf("no return of %s", m.ID)
			}
		}
		return nil
	})
}

// timeoutSteps come last: the minion they pause wakes up with work to do.
func timeoutSteps() []Step {
	pause := func(_ context.Context, s *Subject) error {
		m, err := s.Minion(min06)
		if err != nil {
			return err
		}
		return m.Pause()
	}
	resume := func(_ context.Context, s *Subject) error {
		m, err := s.Minion(min06)
		if err != nil {
			return err
		}
		return m.Resume()
	}
	// The other two have answered within the time limit, however slow the machine; Salt asks for running jobs after it.
	silent := text("a minion that does not answer", "salt", "-t", "8", "*", "test.ping")
	silent.Before, silent.After = pause, resume
	return []Step{
		salt("longer than the time limit", "-t", "2", min07, "test.sleep", "6"),
		silent,
	}
}

// Clean makes all minions fresh: the files that states and copies have left are removed.
func (s *Subject) Clean() error {
	var errs []error
	for _, m := range s.Minions {
		errs = append(errs, os.RemoveAll(m.StateDir()), os.MkdirAll(m.StateDir(), 0o755))
	}
	return errors.Join(errs...)
}
