# Runs loads through a stock master's own file server.
# argv: master configuration, file of cases (JSON list of {cmd, load}), file for results.
import base64, json, sys

conf, cases, results = sys.argv[1:4]

import salt.config
import salt.fileserver
import salt.payload

opts = salt.config.master_config(conf)
fs = salt.fileserver.Fileserver(opts)

# AESFuncs.__setup_fileserver
methods = {
    "_serve_file": fs.serve_file,
    "_file_find": fs._find_file,
    "_file_hash": fs.file_hash,
    "_file_hash_and_stat": fs.file_hash_and_stat,
    "_file_list": fs.file_list,
    "_file_list_emptydirs": fs.file_list_emptydirs,
    "_dir_list": fs.dir_list,
    "_symlink_list": fs.symlink_list,
    "_file_envs": fs.file_envs,
}

out = []
backends = list(opts["fileserver_backend"])
for case in json.load(open(cases)):
    try:
        load = salt.payload.loads(base64.b64decode(case["load"]))
    except Exception:
        out.append(None)
        continue
    try:
        ret = methods[case["cmd"]](load)
    except Exception:  # AESFuncs.run_func
        ret = ""
    # a backend with a minus is taken away for good (Fileserver.backends changes the options themselves)
    opts["fileserver_backend"][:] = backends
    try:
        packed = salt.payload.dumps(ret)
    except Exception:
        packed = None  # the worker fails to answer
    out.append(base64.b64encode(packed).decode() if packed is not None else None)
json.dump(out, open(results, "w"))
