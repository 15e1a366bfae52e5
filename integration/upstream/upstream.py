"""Runs Salt's own test suite without and through saltclusterd, and says what differs. See README.md."""

import argparse
import concurrent.futures
import os
import pathlib
import shlex
import subprocess
import sys
import time
import tomllib

import results

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
OUT = TOP / "bin/upstream"
LOG = "tmp/results/pytest.log"
VERSIONS = ("3008.3", "3007.15", "3006.28")
SESSION_SECONDS = 5400  # of one selection
PART_SECONDS = 900  # of one session of the part in `make test`, on a slow machine


def read_log(version, name):
    """What pytest wrote in a session; nothing when it did not start."""
    path = OUT / version / name / LOG
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def run(version, nodes, name, seconds, arguments):
    """One session; returns its outcomes and whether it came to its end. Its log stays in bin/upstream."""
    out = OUT / version / name
    started = time.monotonic()
    command = [str(HERE / "session"), version, str(nodes), str(out), str(seconds), *arguments]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    log = read_log(version, name) or process.stdout + process.stderr
    print(f"upstream: Salt {version}, {name}: {results.summary(log)} ({time.monotonic() - started:.0f} s, {out / LOG})", flush=True)
    return results.read(log), results.is_finished(log)


def run_again(version, nodes, name, seconds, differs):
    """Runs tests that differ once more, by themselves; returns those that differ again."""
    again, _ = run(version, nodes, f"{name}-again", seconds, sorted(differs))
    once = [test for test in sorted(differs) if again.get(test) == "PASSED"]
    for test in once:
        print(f"FLAKY: {test} (Salt {version}) failed once and passed alone")
    return {test: outcome for test, outcome in differs.items() if test not in once}


def load_selections():
    return tomllib.loads((HERE / "selections.toml").read_text(encoding="utf-8"))


def arguments_of(selection, source):
    """pytest's arguments for a selection; paths that this version lacks are left out."""
    paths = [path for path in selection["paths"] if (source / "tests/pytests" / path).exists()]
    ignored = [f"--ignore=tests/pytests/{path}" for path in selection.get("ignore", [])]
    return [f"tests/pytests/{path}" for path in paths] + ignored if paths else []


def run_selection(version, nodes, name, arguments, resume):
    """Both sides of a selection at the same time; what differs is run once more, alone. Returns what still differs."""
    sides = {"bare": (0, f"{name}-bare"), "front": (nodes, f"{name}-front{nodes}")}
    outcomes = {}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = {}
        for side, (size, label) in sides.items():
            log = read_log(version, label) if resume else ""
            if results.is_finished(log):
                outcomes[side] = results.read(log)
            else:
                waiting[side] = pool.submit(run, version, size, label, SESSION_SECONDS, arguments)
        for side, future in waiting.items():
            outcomes[side], finished = future.result()
            if not finished:
                outcomes[side]["the session"] = "FAILED"
    if "the session" in outcomes["bare"] or "the session" in outcomes["front"]:
        return {f"{name}: a session did not come to its end": "unfinished"}
    differs = results.compare(outcomes["bare"], outcomes["front"])
    if not differs:
        return {}
    return run_again(version, nodes, f"{name}-front{nodes}", SESSION_SECONDS, differs)


def report(differs, expected, version, nodes):
    """Prints the differences; returns how many are not expected."""
    bad = 0
    for test, outcome in sorted(differs.items()):
        why = results.reason(expected, test, version, nodes)
        bad += why is None
        print(f"upstream: Salt {version}, {nodes} node(s): {outcome} {test}: {why or 'NOT EXPECTED'}")
    return bad


def run_all(args, expected, cache):
    selections = load_selections()
    bad = 0
    for version in args.version or VERSIONS:
        for name, selection in selections.items():
            arguments = arguments_of(selection, cache / "upstream" / version / "src")
            if args.select and name not in args.select or not arguments:
                continue
            differs = run_selection(version, args.nodes, name, arguments, args.resume)
            bad += report(differs, expected, version, args.nodes)
    return bad


def run_part(args, expected):
    """The part in `make test`: tests that pass without saltclusterd, by name, through one node and through three."""
    bad = 0
    tables = tomllib.loads((HERE / "part.toml").read_text(encoding="utf-8"))["tests"]
    for (version, nodes), tests in results.sessions(tables, args.version or VERSIONS).items():
        name = f"part-front{nodes}"
        outcomes, _ = run(version, nodes, name, PART_SECONDS, tests)
        differs = results.compare(dict.fromkeys(tests, "PASSED"), outcomes)
        said = results.failures(read_log(version, name)) if differs else ""
        if 0 < len(differs) <= 3:
            differs = run_again(version, nodes, name, PART_SECONDS, differs)
        unexpected = report(differs, expected, version, nodes)
        if unexpected:
            print(said, flush=True)
        bad += unexpected
    return bad


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="where integration/setup keeps virtualenvs")
    parser.add_argument("--part", action="store_true", help="only the part that is in make test")
    parser.add_argument("--version", action="append", choices=VERSIONS, help="default: all")
    parser.add_argument("--nodes", type=int, choices=(1, 3), default=1, help="3: behind HAProxy")
    parser.add_argument("--select", action="append", choices=load_selections(), help="default: all")
    parser.add_argument("--resume", action="store_true", help="use what sessions that came to their end left in bin/upstream")
    return parser.parse_args()


def main():
    args = parse()
    if os.geteuid() != 0:
        print("upstream: SKIPPED: only root can make the namespaces of a session")
        return 0 if args.part else 1
    print(f"upstream: {shlex.join(sys.argv[1:])}", flush=True)
    expected = results.read_expected((HERE / "expected.toml").read_text(encoding="utf-8"))
    bad = run_part(args, expected) if args.part else run_all(args, expected, args.cache)
    print(f"upstream: {bad} difference(s) not expected" if bad else "upstream: nothing but expected differences")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
