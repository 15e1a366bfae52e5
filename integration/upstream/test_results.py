"""Tests of results.py; `make test-upstream` and the part in `make test` run them first."""

import pytest
import results

LOG = """\
collecting ... collected 3 items
tests/a.py::test_one PASSED                                   [ 33%]
tests/a.py::test_two[x y] FAILED                              [ 66%]
tests/a.py::test_three PASSED                                 [100%]
tests/a.py::test_three ERROR                                  [100%]
=================== 1 failed, 2 passed, 1 error in 3.21s ====================
"""


def test_read():
    assert results.read(LOG) == {
        "tests/a.py::test_one": "PASSED",
        "tests/a.py::test_two[x y]": "FAILED",
        "tests/a.py::test_three": "ERROR",
    }


def test_is_finished():
    assert results.is_finished(LOG)
    assert not results.is_finished(LOG.rsplit("=", 30)[0].rsplit("\n", 1)[0])


def test_summary():
    assert results.summary(LOG) == "1 failed, 2 passed, 1 error in 3.21s"
    assert results.summary(LOG + "unclosed MasterMinion\n") == "1 failed, 2 passed, 1 error in 3.21s"
    assert results.summary("one\ntwo\n") == "two"
    assert results.summary("") == "no output"


def test_failures():
    log = "===== FAILURES =====\n__ test_two __\nE   one\nE   two\n===== short test summary info =====\nFAILED tests/a.py\n"
    assert results.failures(log, lines=2) == "E   one\nE   two"
    assert results.failures("collecting\nERROR: not found: tests/a.py::test_four\n", lines=1).startswith("ERROR: not found")


def test_sessions():
    tables = [
        {"versions": ["3006.28", "3008.3"], "nodes": [1], "names": ["a.py::test_one"]},
        {"versions": ["3008.3"], "nodes": [1, 3], "names": ["b.py::test_two[x]"]},
    ]
    assert results.sessions(tables, ["3008.3", "3006.28"]) == {
        ("3006.28", 1): ["tests/pytests/a.py::test_one"],
        ("3008.3", 1): ["tests/pytests/a.py::test_one", "tests/pytests/b.py::test_two[x]"],
        ("3008.3", 3): ["tests/pytests/b.py::test_two[x]"],
    }
    assert results.sessions(tables, ["3006.28"]) == {("3006.28", 1): ["tests/pytests/a.py::test_one"]}


@pytest.mark.parametrize(
    "bare, front, want",
    [
        ({"a": "PASSED"}, {"a": "PASSED"}, {}),
        ({"a": "PASSED"}, {"a": "FAILED"}, {"a": "FAILED"}),
        ({"a": "PASSED"}, {"a": "SKIPPED"}, {"a": "SKIPPED"}),
        ({"a": "PASSED"}, {}, {"a": "missing"}),
        ({"a": "FAILED"}, {"a": "FAILED"}, {}),
        ({"a": "FAILED"}, {"a": "PASSED"}, {}),
    ],
)
def test_compare(bare, front, want):
    assert results.compare(bare, front) == want


def test_reason():
    expected = results.read_expected(
        '[[difference]]\ntest = "tests/a.py::test_two[x y]"\nversions = ["3008.3"]\nnodes = [3]\nreason = "meant"\n'
    )
    assert results.reason(expected, "tests/a.py::test_two[x y]", "3008.3", 3) == "meant"
    assert results.reason(expected, "tests/a.py::test_two[x y]", "3006.28", 3) is None
    assert results.reason(expected, "tests/a.py::test_two[x y]", "3008.3", 1) is None
    assert results.reason(expected, "tests/b.py::test_two", "3008.3", 3) is None


def test_expected_without_reason():
    with pytest.raises(ValueError, match="without test or reason"):
        results.read_expected('[[difference]]\ntest = "a"\n')
