"""Results of pytest sessions, and what differs between two of them."""

import fnmatch
import re
import tomllib

LINE = re.compile(r"^(\S+?\.py::.+?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b")


def read(log):
    """Outcome by test, from a session's log: it is there also when the session was cut off."""
    found = {}
    for line in log.splitlines():
        match = LINE.match(line)
        if match and found.get(match[1]) not in ("FAILED", "ERROR"):
            found[match[1]] = match[2]
    return found


SUMMARY = re.compile(r"^=+ (.*(?:passed|failed|skipped|error|no tests ran).* in [0-9.]+s.*?) =+$", re.MULTILINE)


def summary(log):
    """The line in which pytest counts the outcomes, else the last line. Salt's destructors print more behind it."""
    lines = SUMMARY.findall(log) or log.strip().splitlines() or ["no output"]
    return lines[-1]


def is_finished(log):
    """Whether pytest has written its summary; without it tests are missing."""
    return SUMMARY.search(log) is not None


def failures(log, lines=150):
    """What pytest says of the tests that failed, the last lines of it; when it did not come so far, of the whole log."""
    match = re.search(r"^=+ (ERRORS|FAILURES) =+$.*?(?=^=+ short test summary info =+$|\Z)", log, re.MULTILINE | re.DOTALL)
    return "\n".join((match[0] if match else log).splitlines()[-lines:])


def sessions(tables, versions):
    """The tests of part.toml's tables by session, which is one of these versions and a number of nodes."""
    found = {}
    for table in tables:
        for version in [version for version in table["versions"] if version in versions]:
            for nodes in table["nodes"]:
                found.setdefault((version, nodes), []).extend(f"tests/pytests/{name}" for name in table["names"])
    return found


def compare(bare, front):
    """Tests that pass without saltclusterd and not through it, with their outcome there."""
    return {test: front.get(test, "missing") for test, was in bare.items() if was == "PASSED" and front.get(test) != "PASSED"}


def read_expected(text):
    """The expected differences: tables with test (a pattern), versions, nodes, and the reason."""
    entries = tomllib.loads(text).get("difference", [])
    for entry in entries:
        if not entry.get("reason") or not entry.get("test"):
            raise ValueError(f"expected difference without test or reason: {entry}")
    return entries


def reason(expected, test, version, nodes):
    """Why a difference is expected; None: it is not."""
    for entry in expected:
        versions, sizes = entry.get("versions", [version]), entry.get("nodes", [nodes])
        if version in versions and nodes in sizes and fnmatch.fnmatchcase(test, entry["test"].replace("[", "[[]")):
            return entry["reason"]
    return None
