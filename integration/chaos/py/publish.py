"""Publishes labmod.count with each number that comes in on standard input, with Salt's own LocalClient."""

import json
import sys
import time

import salt.client
import salt.config


def publish(path, number, padding):
    out = {"number": number, "start": time.time(), "jid": "", "error": ""}
    try:
        # A new client each time: 3006 makes a new key for its local clients at every start.
        client = salt.client.LocalClient(mopts=salt.config.client_config(path))
        # What makes it larger goes to nobody's function: metadata are kept with the job.
        more = {"metadata": "x" * padding} if padding else {}
        pub = client.run_job("*", "labmod.count", [number], timeout=5, listen=False, **more)
        if pub:
            out["jid"] = pub.get("jid", "")
        else:
            out["error"] = "no minions matched"
        client.destroy()
    except BaseException as exc:  # also SystemExit, which some versions raise
        out["error"] = "{}: {}".format(type(exc).__name__, exc)
    out["end"] = time.time()
    return out


def main():
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(publish(sys.argv[1], int(line), int(sys.argv[2]))), flush=True)


main()
