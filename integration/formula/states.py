"""
Renders states of the formula as Salt's state compiler does, with its Jinja and YAML, for a minion and pillar of the test's; what the
functions of Salt would answer is made up here. In: JSON on standard input. Out: a list of the states' data.
"""

import json
import sys

import jinja2
import yaml

import salt.utils.jinja
import salt.utils.dictupdate

asked = json.load(sys.stdin)


def merge(a, b, strategy):
    return salt.utils.dictupdate.merge(a, b, strategy=strategy)


def stdout(command, **_):
    for begin, said in asked["commands"].items():
        if command.startswith(begin):
            return said
    raise KeyError(command)


functions = {
    "pillar.get": lambda name, default: asked["pillar"].get(name, default),
    "slsutil.merge": merge,
    "cmd.run_stdout": stdout,
    "cmd.which": lambda name: "/usr/bin/" + name,
    "file.directory_exists": lambda path: True,
    "file.file_exists": lambda path: True,
    "file.get_user": lambda path: "salt",
}

env = jinja2.Environment(
    loader=jinja2.FileSystemLoader(asked["root"]),
    extensions=[salt.utils.jinja.SerializerExtension, "jinja2.ext.do", "jinja2.ext.loopcontrols"],
    undefined=jinja2.StrictUndefined,
)
env.filters.update(salt.utils.jinja.jinja_filter.salt_jinja_filters)

out = []
for sls in asked["sls"]:
    text = env.get_template(sls).render(
        salt=functions,
        pillar=asked["pillar"],
        grains=asked["grains"],
        opts={"test": False},
        tpldir=sls.rsplit("/", 1)[0],
    )
    out.append(yaml.safe_load(text))
json.dump(out, sys.stdout)
