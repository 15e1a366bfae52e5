"""Reads returns out of a master's job cache with Salt's own returner, and prints them as JSON. Jids come in on standard input."""

import json
import logging
import os
import signal
import sys

import salt.config
import salt.payload
import salt.returners.local_cache as cache
import salt.utils.jid


class Stuck(BaseException):  # Salt goes on after an Exception
    pass


def stuck(*_):
    raise Stuck("Salt reads this for ever: something in it cannot be decoded")


def read(jid):
    """All returns of a jid: {minion: [number, error]}. Salt tries again and again what it cannot decode, so its time is bounded."""
    signal.alarm(5)
    try:
        found = cache.get_jid(jid)
        return {minion: [ret.get("return"), ""] for minion, ret in found.items()}
    except (Exception, Stuck) as exc:
        return by_hand(jid, str(exc))
    finally:
        signal.alarm(0)


def by_hand(jid, why):
    out = {}
    top = salt.utils.jid.jid_dir(jid, cache._job_dir(), cache.__opts__["hash_type"])
    for minion in os.listdir(top) if os.path.isdir(top) else []:
        path = os.path.join(top, minion, "return.p")
        if minion.startswith(".") or not os.path.isfile(path):
            continue
        try:
            with open(path, "rb") as f:
                out[minion] = [salt.payload.load(f)["return"], ""]
        except Exception as exc:
            out[minion] = [None, "{}; {}: {}".format(why, type(exc).__name__, exc)]
    return out


def main():
    cache.__opts__ = salt.config.master_config(sys.argv[1])
    cache.__context__ = {}
    signal.signal(signal.SIGALRM, stuck)
    logging.disable(logging.CRITICAL)  # Salt complains thousands of times a second about what it cannot decode
    jids = json.load(open(sys.argv[2]))
    json.dump({jid: read(jid) for jid in jids}, sys.stdout)


main()
