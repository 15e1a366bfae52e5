# Runs loads through a stock master's own AESFuncs, in a cachedir of its own.
# argv: master configuration, file of cases (JSON list of {load, file}), file for results: of each the reply, and what the file holds then.
import asyncio, base64, json, os, sys

conf, cases, results = sys.argv[1:4]

import salt.config
import salt.master
import salt.payload

opts = salt.config.master_config(conf)
funcs = salt.master.AESFuncs(opts)
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)


async def wait(coroutine):
    return await coroutine


out = []
with open(cases) as f:
    todo = json.load(f)
for case in todo:
    load = salt.payload.loads(base64.b64decode(case["load"]))
    for key in ("nonce", "tok"):
        load.pop(key, None)
    ret = funcs.run_func(load["cmd"], load)
    if asyncio.iscoroutine(ret):
        ret = loop.run_until_complete(wait(ret))
    one = {"ret": base64.b64encode(salt.payload.dumps(ret[0])).decode(), "file": None}
    path = os.path.join(opts["cachedir"], case["file"])
    if os.path.isfile(path):
        with open(path, "rb") as f:
            one["file"] = base64.b64encode(f.read()).decode()
    out.append(one)
with open(results, "w") as f:
    json.dump(out, f)
sys.stdout.flush()
os._exit(0)
