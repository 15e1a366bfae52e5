package parity

// minionSteps start on a minion.
func minionSteps() []Step {
	var all []Step
	for _, id := range []string{min06, min07, min08} {
		all = append(all,
			call(id, "call: ping", "test.ping"),
			call(id, "call: pillar", "pillar.items"),
			call(id, "call: apply a state", "state.apply", "demo"),
			call(id, "call: text of a file", "cp.get_file_str", "salt://demo/files/plain.txt"),
			call(id, "call: a function nobody has", "nosuch.function"),
			call(id, "call: publish", "publish.publish", "*", "test.ping"),
			call(id, "call: event", "event.send", "lab/parity", `{"a": 1}`),
		)
	}
	return append(all,
		call(min06, "call: publish, full data", "publish.full_data", "min07*", "test.echo", "x"),
		call(min07, "call: publish what is not allowed", "publish.publish", "*", "cmd.run", "id"),
		call(min08, "call: publish to nobody", "publish.publish", "nobody", "test.ping"),
		call(min08, "call: runner", "publish.runner", "manage.up"),
		call(min06, "call: runner that is not allowed", "publish.runner", "manage.down"),
		salt("publish from minions", "min0[67]*", "publish.publish", "*", "test.ping"),
		salt("event from minions", "*", "event.send", "lab/parity"),
		text("call: pillar as people see it", "salt-call", "pillar.items").on(min08),
	)
}

func (s Step) on(minion string) Step {
	s.On = minion
	return s
}

func runnerSteps() []Step {
	pillars := run("cached pillar", "cache.pillar", "tgt="+min07)
	grains := run("cached grains", "cache.grains", "tgt="+min06)
	grains.Code, pillars.Code = true, true // whole grains differ from start to start
	return []Step{
		run("who is up", "manage.up"),
		run("who is down", "manage.down"),
		run("status", "manage.status"),
		run("versions", "manage.versions"),
		run("pillar by runner", "pillar.show_pillar", min06),
		run("files by runner", "fileserver.file_list"),
		run("environments by runner", "fileserver.envs"),
		run("execute by runner", "salt.execute", "*", "test.ping"),
		run("a runner nobody has", "nosuch.runner"),
		pillars, grains,
	}
}

// scheduleSteps: a job that a minion starts on its own, with its return to the master. In a cluster that is the master
// which is responsible for the minion, because the return belongs to no publication.
func scheduleSteps() []Step {
	list := salt("schedule: list", min06, "schedule.list", "return_yaml=False", "show_all=False")
	found := run("schedule: its return", "jobs.list_jobs", "search_function=test.arg_type", "search_target="+min06)
	found.Until, found.Code = "test.arg_type", true
	return []Step{
		salt("schedule: add", min06, "schedule.add", "parity", "function=test.arg_type", "job_args=[scheduled]", "seconds=2",
			"maxrunning=1"),
		list, found,
		salt("schedule: disable a job", min06, "schedule.disable_job", "parity"),
		salt("schedule: delete", min06, "schedule.delete", "parity"),
		salt("schedule: delete again", min06, "schedule.delete", "parity"),
		salt("schedule: nothing is left", min06, "schedule.list", "return_yaml=False"),
	}
}
