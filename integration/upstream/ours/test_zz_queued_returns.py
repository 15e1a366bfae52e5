"""The return of a queued state reaches the caller and the job cache. Ours, not Salt's; the last in its directory, because a
saltclusterd that has just started accepts returns of jobs that it has not seen published."""

import json
import re
import subprocess
import sys
import time

import pytest

HOLD = "hold:\n  cmd.run:\n    - name: touch {started}; while [ ! -e {release} ]; do sleep 0.2; done\n"


def start(salt_cli, minion, *args):  # -u: it does not flush the line with the jid, which the test needs at once
    argv = [sys.executable, "-u", salt_cli.script_name, "-c", str(salt_cli.config_dir), minion, "state.sls", *args]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition):
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.timeout(300)
def test_queued_state_return(salt_master, salt_minion, salt_cli, salt_run_cli, tmp_path):
    started, release = tmp_path / "started", tmp_path / "release"
    tree = salt_master.state_tree.base
    with tree.temp_file("qa.sls", HOLD.format(started=started, release=release)), tree.temp_file(
        "qb.sls", "qb:\n  test.succeed_without_changes: []\n"
    ):
        first = start(salt_cli, salt_minion.id, "qa", "-t", "90")
        wait_for(started.exists)
        second = start(salt_cli, salt_minion.id, "qb", "queue=True", "-t", "90", "--show-jid")
        jid = re.search(r"jid: (\S+)", second.stdout.readline())[1]
        time.sleep(3)  # the minion takes the job, which nothing shows, and queues it
        release.touch()
        first.communicate(timeout=120)
        out, _ = second.communicate(timeout=120)
        assert second.returncode == 0, out
        assert "test_|-qb" in json.dumps(salt_run_cli.run("jobs.lookup_jid", jid).data), out
