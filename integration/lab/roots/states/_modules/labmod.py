"""A module of the lab: to see that modules are synchronised, and what a minion has run how often."""

import os
import time


def hello(name="world"):
    return "hello " + name


def count(number, **kwargs):
    """
    Write down that this job has been run, in the file "ran" of the minion's directory, and return its number.
    """
    line = "{} {} {:.3f}\n".format(kwargs.get("__pub_jid", "-"), number, time.time())
    out = os.open(os.path.join(__grains__["lab_dir"], "ran"), os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    try:
        os.write(out, line.encode())
    finally:
        os.close(out)
    return number


def fire(tags, pretag=None):
    """
    Send one list of events to the master, as beacons do.
    """
    import salt.utils.event

    if isinstance(tags, str):
        tags = tags.split(",")
    events = [{"tag": tag, "data": {"n": i, "id": __opts__["id"]}} for i, tag in enumerate(tags)]
    with salt.utils.event.get_event("minion", opts=__opts__, listen=False) as bus:
        return bus.fire_event({"data": None, "tag": None, "events": events, "pretag": pretag}, "fire_master")
