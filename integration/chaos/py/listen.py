"""Prints the tags of the events on a master's bus that belong to the history."""

import json
import sys
import time

import salt.config
import salt.utils.event


def main():
    opts = salt.config.master_config(sys.argv[1])
    bus = salt.utils.event.get_master_event(opts, opts["sock_dir"], listen=True)
    print(json.dumps({"ready": True}), flush=True)
    while True:
        event = bus.get_event(wait=1, full=True, auto_reconnect=True)
        if event and event.get("tag", "").startswith("chaos/"):
            print(json.dumps({"tag": event["tag"], "at": time.time()}), flush=True)


main()
