"""Prints what a master has written into its cachedir, decoded by Salt's own code, as JSON: names and texts."""

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
    """A job's directory is named by a hash, and holds its id; in its load it is what came, which may be anything."""
    parts = path.split(os.sep)
    if parts[0] != "jobs" or len(parts) < 3:
        return path
    top = os.path.join(CACHE, *parts[:3])
    try:
        with open(os.path.join(top, "jid"), encoding="utf-8") as fp:
            jid = fp.read()
    except OSError:
        try:
            with open(os.path.join(top, ".load.p"), "rb") as fp:
                jid = "of " + json.dumps(ordered(salt.payload.loads(fp.read()).get("jid")))
        except OSError:
            return path
    return os.path.join("jobs", jid, *parts[3:])


out = []
for bank in BANKS:
    for top, _, names in os.walk(os.path.join(CACHE, bank)):
        for name in names:
            path = os.path.join(top, name)
            out.append((job_of(os.path.relpath(path, CACHE)), read(path)))
print(json.dumps(sorted(out)))
