# Has a stock master's own ClearFuncs save and make publications.
# argv: master configuration, file of cases (JSON list of what a command line sends), file for results.
import base64, json, os, sys

conf, cases, results = sys.argv[1:4]

import salt.config
import salt.master
import salt.payload
import salt.returners.local_cache as local_cache
import salt.utils.jid

opts = salt.config.master_config(conf)
local_cache.__opts__ = opts
local_cache.__context__ = {}


class Event:
    def fire_event(self, *args, **kwargs):
        pass


class Minion:
    returners = {"local_cache.save_load": local_cache.save_load}


funcs = object.__new__(salt.master.ClearFuncs)
funcs.opts = opts
funcs.event = Event()
funcs.mminion = Minion()

out = []
with open(cases) as f:
    todo = json.load(f)
for i, load in enumerate(todo):
    jid = salt.utils.jid.gen_jid(opts)
    extra = load.get("kwargs", {})
    payload = funcs._prep_pub(["web1"], jid, load, extra, [])
    path = os.path.join(salt.utils.jid.jid_dir(jid, os.path.join(opts["cachedir"], "jobs"), opts["hash_type"]), ".load.p")
    with open(path, "rb") as f:
        saved = f.read()
    out.append({
        "jid": jid,
        "load": base64.b64encode(saved).decode(),
        "plain": base64.b64encode(salt.payload.dumps(payload)).decode(),
    })
with open(results, "w") as f:
    json.dump(out, f)
