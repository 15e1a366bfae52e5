"""Prints what a master has written into its cachedir, decoded by Salt's own code, as JSON: texts by name."""

import json
import os
import sys

import salt.payload

CACHE = sys.argv[1]
BANKS = ("jobs", "syndics", "minions", "mine", "grains", "pillar")


def ordered(value):
    if isinstance(value, dict):
        return {"map": sorted(([ordered(k), ordered(v)] for k, v in value.items()), key=str)}
    if isinstance(value, (list, tuple)):
        return [ordered(v) for v in value]
    return repr(value)


def read(path):
    with open(path, "rb") as fp:
        raw = fp.read()
    if not path.endswith(".p"):
        return raw.decode("utf-8", "replace")
    return json.dumps(ordered(salt.payload.loads(raw)))


def job_of(path):
    """A job's directory is named by a hash, and holds its id."""
    parts = path.split(os.sep)
    if parts[0] != "jobs" or len(parts) < 3:
        return path
    try:
        with open(os.path.join(CACHE, *parts[:3], "jid"), encoding="ascii") as fp:
            return os.path.join("jobs", fp.read(), *parts[3:])
    except OSError:
        return path


out = {}
for bank in BANKS:
    for top, _, names in os.walk(os.path.join(CACHE, bank)):
        for name in names:
            path = os.path.join(top, name)
            out[job_of(os.path.relpath(path, CACHE))] = read(path)
print(json.dumps(out))
