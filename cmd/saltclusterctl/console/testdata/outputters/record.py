# What outputters of Salt print: PATH-TO-VENV/bin/python record.py > salt.json
import json, sys
from collections import OrderedDict as O
import importlib
import salt.output.nested as n
n.__opts__={'color':False,'output_indent':4}
n.__salt__={}
t=importlib.import_module('salt.output.txt')
cases=[
 '{"nodes": [{"id": "m1", "state": "alive", "weight": 1, "share": 0.333}, {"id": "m3", "draining": true, "next": ["a", ["b", "c"]], "none": null, "text": "two\\nlines"}], "owner": {"kind": "minion", "e": "", "list": [], "map": {}}}',
 '{"a": {"b": {"c": [1, 2.5, false]}}, "d": "x"}',
 '["a", 1, {"b": 2}]',
 '{"q": "it\'s", "r": ["it\'s", "say \\"hi\\"", "both \' and \\""]}',
]
out=[]
for c in cases:
    d=json.loads(c,object_pairs_hook=O)
    p=json.loads(c)
    row={"value":c,"nested":n.output(d)}
    if isinstance(p,dict): row["txt"]=t.output(p)
    out.append(row)
json.dump(out,sys.stdout,indent=1)
