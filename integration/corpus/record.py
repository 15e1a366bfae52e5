"""Records what a real minion asks its master while it runs a broad set of functions, states, mines and events, and what a real syndic
asks the master above its own.

    <venv>/bin/python record.py <output directory> [minion|syndic]

writes <version>.json.gz and <version>.syndic.json.gz there: lists of the requests as they were before they were sealed, in order, alike
ones left out. All keys are made by this run and protect nothing. See record.sh.
"""

import gzip
import hashlib
import json
import os
import shutil
import socket
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "golden"))

import lab  # noqa: E402
import vectors  # noqa: E402
import yaml  # noqa: E402

import salt.client  # noqa: E402
import salt.crypt  # noqa: E402
import salt.exceptions  # noqa: E402
import salt.payload  # noqa: E402
import salt.version  # noqa: E402

ID = "corpus"
ROOT = "/tmp/salt-corpus"  # stands in what is recorded
ALIKE = 2  # of one kind are kept
LARGEST = 64 * 1024

EVERYTHING = (
    ("test.ping",), ("test.version",), ("test.echo", "grüße"), ("test.echo", ""),
    ("test.arg", 1, 1.5, None, True, [1, [2]], {"a": {"b": 3}}), ("test.kwarg", "a=1", "b=[1, 2]"), ("test.fib", 10), ("test.collatz", 7),
    ("test.retcode", 42), ("test.false",), ("test.true",), ("test.exception", "broken"), ("test.try_",), ("test.not_there",),
    ("test.rand_str", 8), ("test.outputter", {"a": [1, 2]}), ("test.providers",),
    ("test.cross_test", "test.ping"), ("test.tty",), ("test.sleep", 1), ("test.attr_call",),
    ("sys.list_modules",), ("sys.list_functions", "test"), ("sys.argspec", "test.arg"), ("sys.doc", "test.ping"),
    ("grains.items",), ("grains.get", "corpus"), ("grains.item", "corpus", "none"), ("grains.ls",), ("grains.setval", "set", "by the corpus"),
    ("grains.append", "list", "one"), ("grains.delval", "set"), ("grains.has_value", "corpus"),
    ("pillar.items",), ("pillar.get", "corpus:answer"), ("pillar.item", "corpus"), ("pillar.raw",), ("pillar.ls",), ("pillar.keys", "corpus"),
    ("pillar.items", "pillar={\"more\": 1}"), ("pillar.items", "pillarenv=base"), ("pillar.items", "saltenv=none"),
    ("saltutil.refresh_pillar",), ("saltutil.refresh_grains",), ("saltutil.sync_all",), ("saltutil.sync_modules",), ("saltutil.sync_states",),
    ("saltutil.refresh_modules",), ("saltutil.running",), ("saltutil.find_job", "20200101000000000000"), ("saltutil.find_cached_job", "1"),
    ("saltutil.is_running", "test.*"), ("saltutil.clear_cache",),
    ("corpusmod.values",), ("corpusmod.large",), ("corpusmod.broken",),
    ("cp.list_master",), ("cp.list_master", "saltenv=none"), ("cp.list_master_dirs",), ("cp.list_master_symlinks",), ("cp.list_states",),
    ("cp.get_file", "salt://hello.txt", ROOT + "/got"), ("cp.get_file", "salt://large.txt", ROOT + "/large"),
    ("cp.get_file", "salt://large.txt", ROOT + "/large", "gzip=5"), ("cp.get_file", "salt://none", ROOT + "/none"),
    ("cp.get_file", "salt://empty.txt", ROOT + "/empty"), ("cp.get_file", "salt://link.txt", ROOT + "/link"),
    ("cp.get_file_str", "salt://hello.txt"), ("cp.get_file_str", "salt://sub/one.txt"), ("cp.get_dir", "salt://sub", ROOT + "/dir"),
    ("cp.get_template", "salt://greeting.jinja", ROOT + "/greeting"), ("cp.hash_file", "salt://hello.txt"), ("cp.hash_file", "salt://none"),
    ("cp.stat_file", "salt://hello.txt"), ("cp.cache_file", "salt://sub/deep/three.txt"), ("cp.cache_files", ["salt://hello.txt", "salt://sub/two.txt"]),
    ("cp.cache_dir", "salt://sub"), ("cp.cache_master",), ("cp.is_cached", "salt://hello.txt"), ("cp.envs",), ("cp.push", ROOT + "/got"),
    ("mine.send", "test.echo", "mine value"), ("mine.send", "alias", "mine_function=test.echo", "grüße"),
    ("mine.send", "guarded", "mine_function=test.echo", "x", "allow_tgt=other"), ("mine.send", "corpusmod.values"), ("mine.update",),
    ("mine.update", "clear=True"), ("mine.get", "*", "test.ping"), ("mine.get", ID, "alias"), ("mine.get", "*", ["test.ping", "alias"]),
    ("mine.get", ID + ",other", "alias", "list"), ("mine.get", "corpus:True", "alias", "grain"), ("mine.get", "E@.*", "alias", "compound"),
    ("mine.get", "none*", "alias"), ("mine.valid",), ("mine.delete", "alias"), ("mine.delete", "none"), ("mine.flush",), ("mine.flush",),
    ("mine.get", "*", "test.ping"),
    ("event.send", "corpus/event"), ("event.send", "corpus/event", {"a": 1, "b": [1, 2]}), ("event.send", "corpus/grüße", {"t": "grüße"}),
    ("event.send", "corpus/with", "with_grains=True"), ("event.send", "corpus/pillar", "with_pillar=corpus"),
    ("event.fire_master", {"a": 1}, "corpus/fired"), ("event.fire", {"a": 1}, "corpus/here"),
    ("state.apply",), ("state.apply", "mixed"), ("state.apply", "simple", "test=True"), ("state.apply", "broken"), ("state.apply", "none"),
    ("state.highstate",), ("state.sls_id", "a file", "simple"), ("state.show_sls", "simple"), ("state.show_top",), ("state.show_highstate",),
    ("state.show_lowstate",), ("state.single", "test.succeed_with_changes", "name=x"), ("state.single", "test.fail_with_changes", "name=x"),
    ("state.low", {"state": "test", "fun": "nop", "name": "x"}), ("state.high", {"x": {"test": ["nop"]}}), ("state.event", "count=0"),
    ("state.running",), ("state.template_str", "x:\n  test.nop: []\n"),
    ("schedule.list",), ("schedule.add", "job", "function=test.ping", "seconds=3600"), ("schedule.run_job", "job"), ("schedule.delete", "job"),
    ("config.get", "id"), ("config.option", "master_port"), ("status.uptime",), ("status.loadavg",), ("cmd.run", "echo a"), ("cmd.run_all", "false"),
    ("file.file_exists", "/"), ("data.update", "a", 1), ("data.load",), ("beacons.list",), ("publish.publish", "*", "test.ping"),
    ("publish.runner", "test.arg"), ("match.glob", "*"), ("match.compound", "G@corpus:True"), ("minion.list",), ("key.finger",),
    ("slsutil.renderer", "salt://simple.sls"), ("jinja.load_map", "simple.sls", "x"), ("defaults.get", "a"), ("random.get_str", 5),
    # What comes above with files, grains, jobs and beacons of states; and what goes on by itself, while the minion sleeps.
    ("state.apply", "many"), ("state.apply", "many"), ("state.apply", "many", "test=True"), ("state.sls", "simple", "saltenv=dev"),
    ("state.sls", "simple", "pillar={\"corpus\": {\"text\": \"given\"}}"), ("state.sls", "simple,mixed", "exclude=mixed"),
    ("state.test", "simple"), ("state.request", "simple"), ("state.check_request",), ("state.clear_request",), ("state.show_low_sls", "simple"),
    ("state.show_states",), ("state.sls_exists", "simple"), ("state.id_exists", "a file", "simple"), ("state.get_pauses",),
    ("state.single", "file.managed", "name=" + ROOT + "/single", "source=salt://hello.txt"), ("state.top", "top.sls"),
    ("saltutil.sync_all", "refresh=False"), ("saltutil.sync_beacons",), ("saltutil.sync_utils",), ("saltutil.sync_grains",),
    ("saltutil.sync_returners",), ("saltutil.refresh_beacons",), ("saltutil.refresh_matchers",), ("saltutil.pillar_refresh", "wait=True"),
    ("saltutil.kill_job", "20200101000000000000"), ("saltutil.signal_job", "20200101000000000000", 0), ("saltutil.term_all_jobs",),
    ("beacons.delete", "corpusbeacon"), ("beacons.add", "corpusbeacon", [{"interval": 1}]), ("schedule.add", "often", "function=test.echo", "job_args=[\"gr\u00fc\u00dfe\"]", "seconds=1"),
    ("schedule.add", "quiet", "function=test.ping", "seconds=1", "return_job=False"), ("schedule.add", "failing", "function=test.exception", "seconds=1"),
    ("test.sleep", 4), ("beacons.disable_beacon", "corpusbeacon"), ("beacons.delete", "corpusbeacon"), ("beacons.list_available",),
    ("schedule.modify", "often", "function=test.ping", "seconds=3600"), ("schedule.disable_job", "quiet"), ("schedule.is_enabled", "often"),
    ("schedule.show_next_fire_time", "often"), ("schedule.purge",),
    ("publish.publish", "*", "test.echo", "gr\u00fc\u00dfe", "timeout=1"), ("publish.publish", "corpus:True", "test.arg", "[1, a]", "grain", "timeout=1"),
    ("publish.full_data", "*", "test.ping", "timeout=1"), ("publish.publish", "*", "cmd.run", "id", "timeout=1"), ("publish.publish", "none*", "test.ping", "timeout=1"),
    ("mine.send", "test.arg", 1, "a=2"), ("mine.send", "own", "mine_function=grains.get", "corpus", "allow_tgt=corpus", "allow_tgt_type=glob"),
    ("mine.get", "*", "own"), ("mine.get", "corpus:answer:42", "own", "pillar"), ("mine.get", "G@corpus:True and corpus*", "own", "compound"),
    ("mine.get", "c[a-z]*", "own", "pcre"), ("mine.get", "*", "own", "exclude_minion=True"), ("mine.flush",),
    ("cp.get_url", "salt://hello.txt", ROOT + "/url"), ("cp.get_url", "salt://dev.txt?saltenv=dev", ROOT + "/url"),
    ("cp.get_file", "salt://dev.txt", ROOT + "/dev", "saltenv=dev"), ("cp.get_dir", "salt://sub/deep", ROOT + "/deep"), ("cp.list_minion",),
    ("cp.list_states", "saltenv=dev"), ("cp.list_master", "prefix=sub"), ("cp.hash_file", "salt://dev.txt", "saltenv=dev"),
    ("cp.push", ROOT + "/large"), ("cp.push", ROOT + "/url", "upload_path=/gr\u00fc\u00dfe"), ("cp.push_dir", ROOT + "/dir"), ("cp.push", ROOT + "/none"),
    ("cmd.script", "salt://script.sh", "a"), ("cmd.run", "echo {{ grains.corpus }}", "template=jinja"), ("grains.set", "corpus_set:deep", 3),
    ("grains.filter_by", {"Debian": 1}), ("grains.remove", "list", "one"), ("pillar.obfuscate",), ("pillar.filter_by", {"a": 1}, "corpus:answer", "default=a"),
    ("event.send", "corpus/all", "with_grains=True", "with_pillar=True", "with_env=CORPUS"), ("event.send", "corpus/list", [1, [2]]),
    ("event.send", "salt/job/20200101000000000000/ret/" + ID, {"a": 1}), ("event.send", "salt/key", {"id": ID}),
    ("sys.state_doc", "test"), ("sys.list_state_functions", "test"), ("sys.reload_modules",), ("file.stats", ROOT + "/url"),
    ("file.manage_file", ROOT + "/url", "", {}, "salt://hello.txt", {}, "root", "root", "0644", "", "base", ""),
    ("saltutil.refresh_pillar",), ("test.ping",),
)

# What is published above a syndic, for the minion below it.
BELOW = (
    ("test.ping",), ("test.echo", "grüße"), ("test.arg", 1, 1.5, None, True, [1, [2]], {"a": {"b": 3}}), ("test.retcode", 42), ("test.false",),
    ("test.exception", "broken"), ("test.not_there",), ("test.outputter", {"a": [1, 2]}), ("test.sleep", 7), ("grains.items",), ("pillar.items",),
    ("state.single", "test.succeed_with_changes", "name=x"), ("state.single", "test.fail_with_changes", "name=x"), ("state.apply", "none"),
    ("event.send", "corpus/below", {"t": "grüße", "b": [1, 2]}), ("event.send", "corpus/grüße"), ("event.fire_master", {"a": 1}, "corpus/fired"),
    ("mine.send", "test.ping"), ("saltutil.find_job", "20200101000000000000"), ("saltutil.running",), ("publish.publish", "*", "test.ping", "timeout=1"),
    ("test.ping",),
)
SYNDIC_PAUSE = 3  # s, in which it forwards what came


def main(out, what="minion"):
    shutil.rmtree(ROOT, ignore_errors=True)
    tmp = tempfile.mkdtemp(prefix="corpus")
    try:
        version = salt.version.__version__
        if what == "syndic":
            exchanges, pairs = record_syndic(tmp)
            # Its pillar is a minion's, and its grains describe the host that it was recorded on.
            said = (plain for plain in opened(exchanges, pairs, tmp) if salt.payload.loads(plain)["cmd"] != "_pillar")
            keep(os.path.join(out, version + ".syndic.json.gz"), version, said)
        else:
            exchanges, pairs = record(tmp)
            keep(os.path.join(out, version + ".json.gz"), version, opened(exchanges, pairs, tmp))
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
        shutil.rmtree(ROOT, ignore_errors=True)


def record(tmp):
    """Runs everything; returns requests with their answers, as they were on the wire."""
    pairs = {name: vectors.new_key() for name in ("master", "minion")}
    roots = os.path.join(tmp, "roots")
    shutil.copytree(os.path.join(HERE, "testdata", "roots"), roots, symlinks=True)
    lab.write(os.path.join(roots, "large.txt"), "".join(f"line {i:06d} of a file that takes two chunks\n" for i in range(40000)))
    master = lab.Master(
        os.path.join(tmp, "m"), *pairs["master"],
        file_roots={"base": [roots], "dev": [os.path.join(HERE, "testdata", "dev")]}, file_recv=True, pillar_roots={"base": [os.path.join(HERE, "testdata", "pillar")]},
        peer={".*": ["test.*"]},
    )
    master.accept(ID, pairs["minion"][1])
    try:
        master.start()
        tap = lab.Tap(master.ret_port)
        tap.start()
        minion = start_minion(*pairs["minion"], tap.port)
        try:
            client = salt.client.LocalClient(os.path.join(master.conf, "master"))
            lab.wait_for("the minion", lambda: client.cmd(ID, "test.ping", timeout=5))
            for fun, *args in EVERYTHING:
                try:
                    answered = client.cmd(ID, fun, args, timeout=60)
                except salt.exceptions.SaltException as err:
                    answered = sys.stderr.write(f"{err} ")
                if not answered:
                    sys.stderr.write(f"{fun} {args}: no return\n")
        finally:
            minion.stop()
            tap.close()
        return tap.exchanges, pairs
    finally:
        if master.daemon:
            master.stop()


def record_syndic(tmp):
    """A master above, a syndic with its master below, and a minion there."""
    pairs = {name: vectors.new_key() for name in ("above", "below", "minion", "leaf")}
    above = lab.Master(os.path.join(tmp, "a"), *pairs["above"], order_masters=True, peer={".*": ["test.*"]})
    above.accept(ID, pairs["minion"][1])
    parts = []
    try:
        above.start()
        parts.append(above)
        tap = lab.Tap(above.ret_port)
        tap.start()
        below = lab.Master(
            os.path.join(tmp, "b"), *pairs["below"], syndic_master="127.0.0.1", syndic_master_port=tap.port, master_id="below",
            syndic_pidfile=os.path.join(tmp, "b", "syndic.pid"), syndic_log_file=os.path.join(tmp, "b", "syndic.log"),
        )
        below.accept("leaf", pairs["leaf"][1])
        # A syndic takes the publish port of its own master's configuration for that of the master above, unless it is 4506.
        conf, pki = os.path.join(tmp, "s", "etc"), os.path.join(tmp, "s", "pki")
        with open(os.path.join(below.conf, "master"), encoding="utf-8") as fp:
            lab.write(os.path.join(conf, "master"), yaml.safe_dump({**yaml.safe_load(fp), "publish_port": above.publish_port}))
        lab.write(os.path.join(conf, "minion"), yaml.safe_dump({"id": ID, "user": "root", "pki_dir": pki, "enable_fqdns_grains": False}))
        for name, text, mode in (("minion.pem", pairs["minion"][0], 0o400), ("minion.pub", pairs["minion"][1], 0o644)):
            lab.write(os.path.join(pki, name), text, mode)
        below.start()
        parts.append(below)
        parts.append(start_minion(*pairs["leaf"], below.ret_port, "leaf"))
        parts.append(lab.Daemon("salt-syndic", conf, os.path.join(tmp, "b", "syndic.out")))
        client = salt.client.LocalClient(os.path.join(above.conf, "master"))
        lab.wait_for("the minion below", lambda: client.cmd("leaf", "test.ping", timeout=10), 300)
        for fun, *args in BELOW:
            client.cmd("leaf", fun, args, timeout=15)
            time.sleep(SYNDIC_PAUSE)
        tap.close()
        return tap.exchanges, pairs
    except TimeoutError:
        for log in ("syndic.out", "syndic.log", "master.out"):
            with open(os.path.join(tmp, "b", log), encoding="utf-8") as fp:
                sys.stderr.write(f"{log}: {fp.read()[-4000:]}\n")
        raise
    finally:
        for part in reversed(parts):
            part.stop()


def start_minion(private, public, port, minion=ID):
    config = {
        "id": minion, "master": "127.0.0.1", "master_port": port, "user": "root", "pki_dir": ROOT + "/pki", "cachedir": ROOT + "/cache",
        "sock_dir": ROOT + "/run", "extension_modules": ROOT + "/ext", "pidfile": ROOT + "/minion.pid", "log_file": ROOT + "/minion.log",
        "mine_functions": {"test.ping": [], "corpusmod.values": []}, "enable_fqdns_grains": False,
        # Not the description of the host it was recorded on.
        "grains_blacklist": ["*"],
        "grains": {"corpus": True, "corpus_dir": ROOT + "/files", "os": "Debian", "os_family": "Debian", "kernel": "Linux", "shell": "/bin/sh", "text": "grüße"},
    }
    lab.write(ROOT + "/etc/minion", yaml.safe_dump(config))
    lab.write(ROOT + "/pki/minion.pem", private, 0o400)
    lab.write(ROOT + "/pki/minion.pub", public)
    os.makedirs(ROOT + "/files", exist_ok=True)
    return lab.Daemon("salt-minion", ROOT + "/etc", ROOT + "/minion.out")


def opened(exchanges, pairs, tmp):
    """The requests of a minion, opened with the session key of its last sign-in."""
    private, session = vectors.load_private(pairs["minion"][0], tmp), None
    for body, reply in exchanges:
        envelope = salt.payload.loads(body)
        if envelope["enc"] == "clear":
            answer = salt.payload.loads(reply)
            load = answer.get("load")
            if isinstance(load, (bytes, str)):
                load = salt.payload.loads(salt.utils.stringutils.to_bytes(load))
            if load and "session" in load:
                session = private.decrypt(load["session"], envelope["load"]["enc_algo"]).decode()
            continue
        plain = salt.crypt.Crypticle({}, session).decrypt(envelope["load"])
        yield without_host(plain[len(salt.crypt.Crypticle.PICKLE_PAD):])


def without_host(plain):
    """What a load says of the machine it was recorded on (tracebacks do) is replaced."""
    words = {sys.prefix: "/opt/salt", socket.gethostname(): "minion-host"}

    def replaced(value):
        if isinstance(value, dict):
            return {replaced(k): replaced(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [replaced(v) for v in value]
        if isinstance(value, str):
            for word, by in words.items():
                value = value.replace(word, by)
        return value

    if any(word.encode() in plain for word in words):
        return salt.payload.dumps(replaced(salt.payload.loads(plain)))
    return plain


def shape(value, depth=4):
    if isinstance(value, dict):
        return {str(k): shape(v, depth - 1) for k, v in sorted(value.items(), key=str)} if depth else "map"
    if isinstance(value, (list, tuple)):
        return [shape(v, depth - 1) for v in value[:5]] if depth else "list"
    return type(value).__name__


def keep(path, version, plains):
    requests, seen, left = [], {}, 0
    for plain in plains:
        load = salt.payload.loads(plain)
        kind = hashlib.sha256(json.dumps([load["cmd"], load.get("fun"), load.get("path"), load.get("tag"), shape(load)]).encode()).hexdigest()
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] > ALIKE or len(plain) > LARGEST:
            left += 1
            continue
        requests.append({"cmd": load["cmd"], "load": vectors.b64(plain)})
    text = json.dumps({"version": version, "id": ID, "requests": requests}, indent=0).encode()
    with open(path, "wb") as fp, gzip.GzipFile("", "wb", 9, fp, 0) as packed:
        packed.write(text)
    counts = {}
    for r in requests:
        counts[r["cmd"]] = counts.get(r["cmd"], 0) + 1
    print(f"{path}: {len(requests)} requests, {left} left out, {os.path.getsize(path)} bytes: {counts}")


if __name__ == "__main__":
    main(*sys.argv[1:])
