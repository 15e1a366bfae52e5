package parity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"saltclusterd/integration/lab"
)

func stateSteps() []Step {
	return []Step{
		salt("what a state would do", "*", "state.apply", "demo", "test=True"),
		salt("apply a state", "*", "state.apply", "demo"),
		salt("apply it again", "*", "state.apply", "demo"),
		salt("highstate", "*", "state.highstate"),
		anyOrder(text("highstate as people see it", "salt", min06, "state.highstate")),
		salt("a state nobody wrote", "*", "state.apply", "nosuch"),
		salt("single state", "*", "state.single", "test.succeed_without_changes", "name=x"),
		salt("single state that fails", "*", "state.single", "test.fail_without_changes", "name=x"),
		salt("show a state", "*", "state.show_sls", "demo"),
		salt("show top", "*", "state.show_top"),
		run("orchestrate", "state.orchestrate", "orch"),
		anyOrder(text("orchestrate as people see it", "salt-run", "state.orchestrate", "orch")),
		run("orchestrate what nobody wrote", "state.orchestrate", "nosuch"),
	}
}

func fileSteps() []Step {
	const dir = "{{grains.lab_dir}}"
	got := func(name string) string { return dir + "/got/" + name }
	return []Step{
		salt("get a file", "*", "cp.get_file", "salt://demo/files/plain.txt", got("plain.txt"), "makedirs=True",
			"template=jinja"),
		salt("get a big file", "*", "cp.get_file", "salt://demo/files/big.bin", got("big.bin"), "makedirs=True",
			"template=jinja"),
		salt("get a directory", "*", "cp.get_dir", "salt://demo/files/tree", got("dir"), "template=jinja"),
		salt("get a file nobody has", "*", "cp.get_file", "salt://nosuch", "/dev/null"),
		salt("hash of a file", "*", "cp.hash_file", "salt://demo/files/big.bin"),
		salt("text of a file", "*", "cp.get_file_str", "salt://demo/files/plain.txt"),
		salt("cache a file", "*", "cp.cache_file", "salt://demo/files/plain.txt"),
		salt("files of the master", "*", "cp.list_master"),
		salt("directories of the master", "*", "cp.list_master_dirs"),
		salt("states of the master", "*", "cp.list_states"),
		salt("environments", "*", "cp.envs"),
		salt("checksums on the minion", "*", "cmd.run", "cd "+dir+" && find . -type f | sort | xargs sha256sum",
			"template=jinja"),
		pushed(),
		// One at a time: while a stock master writes a hash for one it has none for others who ask
		// (salt/fileserver/minionfs.py file_hash).
		salt("text of a pushed file", min06, "cp.get_file_str", "salt://"+min07+"/etc/debian_version"),
		salt("hash of a pushed file", min06, "cp.hash_file", "salt://"+min07+"/etc/debian_version"),
		salt("text of a pushed file, another minion", min08, "cp.get_file_str", "salt://"+min07+"/etc/debian_version"),
		salt("hash of a pushed file, another minion", min08, "cp.hash_file", "salt://"+min07+"/etc/debian_version"),
		salt("get a pushed file nobody has pushed", min08, "cp.get_file_str", "salt://"+min07+"/etc/nosuch"),
		removed(),
		text("copy to minions", "salt-cp", "*", "/etc/hostname", "/dev/null"),
	}
}

// pushed sends a file from a minion; it must arrive whole. In a cluster it arrives on the master that is responsible
// for the minion, because a pushed file does not say which job it belongs to.
func pushed() Step {
	s := salt("push a file", min07, "cp.push", "/etc/debian_version")
	s.After = func(_ context.Context, s *Subject) error {
		want, err := os.ReadFile("/etc/debian_version")
		if err != nil {
			return err
		}
		for _, m := range s.Masters {
			got, err := os.ReadFile(filepath.Join(filesOf(m, min07), "etc/debian_version"))
			if err == nil && string(got) == string(want) {
				return nil
			}
		}
		return fmt.Errorf("the pushed file is on none of %d masters", len(s.Masters))
	}
	return s
}

// filesOf is where a master keeps what a minion has pushed.
func filesOf(m *lab.Master, id string) string {
	return filepath.Join(m.CacheDir(), "minions", id, "files")
}

// removed takes away what was pushed: the next run shall not find it.
func removed() Step {
	s := salt("text of a pushed file that is gone", min08, "cp.get_file_str", "salt://"+min07+"/etc/debian_version")
	s.Before = func(_ context.Context, s *Subject) error {
		var errs []error
		for _, m := range s.Masters {
			errs = append(errs, os.RemoveAll(filesOf(m, min07)))
		}
		return errors.Join(errs...)
	}
	return s
}

func mineSteps() []Step {
	return []Step{
		salt("mine: send", "*", "mine.send", "grains.get", "id"),
		salt("mine: send an alias", "*", "mine.send", "who", "mine_function=grains.get", "id"),
		salt("mine: get", "*", "mine.get", "*", "who"),
		salt("mine: get of a list", min06, "mine.get", min07+","+min08, "grains.get", "tgt_type=list"),
		salt("mine: get what nobody sent", "*", "mine.get", "*", "nosuch"),
		call(min07, "mine: get", "mine.get", "*", "who"),
		run("mine: get by runner", "mine.get", "*", "who"),
		salt("mine: delete", min06, "mine.delete", "who"),
		salt("mine: get after delete", min07, "mine.get", "*", "who"),
		salt("mine: flush", "*", "mine.flush"),
		salt("mine: get after flush", min08, "mine.get", "*", "grains.get"),
	}
}

func moduleSteps() []Step {
	// Minions that have met another master before have its modules: what is new to them is not compared.
	first := salt("saltutil: sync all, first", "*", "saltutil.sync_all")
	first.Code = true
	return []Step{
		first, salt("saltutil: sync all", "*", "saltutil.sync_all"),
		salt("saltutil: refresh pillar", "*", "saltutil.refresh_pillar"),
		salt("saltutil: refresh grains", "*", "saltutil.refresh_grains"),
		salt("saltutil: refresh modules", "*", "saltutil.refresh_modules"),
		salt("saltutil: running", "*", "saltutil.running"),
		salt("saltutil: find a job nobody started", "*", "saltutil.find_job", "20200101000000000000"),
		salt("saltutil: kill a job nobody started", "*", "saltutil.kill_job", "20200101000000000000"),
		salt("saltutil: is running", "*", "saltutil.is_running", "state.*"),
		salt("module of our own", "*", "labmod.hello", "lab"),
		salt("sys: functions", "*", "sys.list_functions", "test"),
	}
}
