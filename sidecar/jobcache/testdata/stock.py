# Runs loads through a stock master's own AESFuncs, in a cachedir of its own, at a time that stands still.
# argv: master configuration, file of cases (JSON list of {load, now}), file for results.
import base64, datetime, json, sys

conf, cases, results = sys.argv[1:4]

import salt.config
import salt.exceptions
import salt.master
import salt.payload
import salt.utils.event
import salt.utils.jid

real = datetime.datetime
clock = {}


class Frozen(real):
    @classmethod
    def utcnow(cls):
        return clock["now"].replace(tzinfo=None)

    @classmethod
    def now(cls, tz=None):
        return clock["now"] if tz else clock["now"].replace(tzinfo=None)


class Module:
    timezone = datetime.timezone
    timedelta = datetime.timedelta
    date = datetime.date


Module.datetime = Frozen
salt.utils.event.datetime = Module
salt.utils.jid._utc_now = lambda: clock["now"]


class Pusher:
    def __init__(self):
        self.sent = []

    def send(self, msg, *args, **kwargs):
        self.sent.append(msg)

    publish = send

    def close(self):
        pass


class Loop:
    def __getattr__(self, name):
        return lambda *a, **k: None


opts = salt.config.master_config(conf)
funcs = salt.master.AESFuncs(opts)
pusher = Pusher()
for ev in (funcs.event, funcs.masterapi.event):
    ev.cpush, ev.pusher, ev._run_io_loop_sync = True, pusher, True
    ev.connect_pull = lambda *a, **k: True
    if getattr(ev, "io_loop", None) is None:
        try:
            import salt.ext.tornado.ioloop

            ev.io_loop = salt.ext.tornado.ioloop.IOLoop()
        except ImportError:
            ev.io_loop = Loop()

out = []
with open(cases) as f:
    todo = json.load(f)
for case in todo:
    sec, micro = divmod(case["now"], 1000000)
    clock["now"] = real.fromtimestamp(sec, datetime.timezone.utc).replace(microsecond=micro)
    try:
        load = salt.payload.loads(base64.b64decode(case["load"]))
    except salt.exceptions.SaltDeserializationError:  # the minion hears "bad load"
        out.append({"ret": "", "events": []})
        continue
    for key in ("nonce", "tok"):
        load.pop(key, None)
    pusher.sent = []
    ret, how = funcs.run_func(load["cmd"], load)
    out.append(
        {
            "ret": base64.b64encode(salt.payload.dumps(ret)).decode(),
            "events": [base64.b64encode(m).decode() for m in pusher.sent],
        }
    )
with open(results, "w") as f:
    json.dump(out, f)
sys.stdout.flush()
import os

os._exit(0)
