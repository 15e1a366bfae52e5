"""Tests of plugin/saltfront.py; run where those of results.py are."""

import os
import pathlib
import subprocess
import sys

PLUGIN = pathlib.Path(__file__).resolve().parent / "plugin"
FRONT = dict.fromkeys(("FRONT_BIN", "FRONT_LOG", "FRONT_SALT_MASTER"), "/nonexistent")
CONFTEST = """\
import saltfront
saltfront.FIXTURE_SECONDS = 0
"""
# Each hangs where pytest-timeout has given up its timer, because something has failed before.
HANGS = """\
import time
import pytest

runs = []

@pytest.mark.timeout(2)
@pytest.mark.flaky(max_runs=2)
def test_again():
    runs.append(1)
    if len(runs) > 1:
        time.sleep(600)
    assert False

@pytest.fixture
def late():
    yield
    time.sleep(600)

@pytest.mark.timeout(2)
def test_teardown(late):
    assert False

@pytest.mark.timeout(2)
def test_after():
    pass
"""


def test_hang_after_failure(tmp_path):
    """A test that hangs when it runs again, or while its fixtures end, does not end the session."""
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_hangs.py").write_text(HANGS, encoding="utf-8")
    paths = [str(PLUGIN), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "FRONT_NODES": "0", **FRONT, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "pytest", "-p", "saltfront", "-p", "no:cacheprovider", "-v", "--tb=no", str(tmp_path)]
    process = subprocess.run(command, cwd=tmp_path, env=env, check=False, capture_output=True, text=True, timeout=120)
    # of the lines above the summary, what a thread dumps may be in the middle
    for said in ("FAILED test_hangs.py::test_again", "ERROR test_hangs.py::test_teardown", "test_after PASSED"):
        assert said in process.stdout, process.stdout + process.stderr
