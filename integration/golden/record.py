"""Records golden vectors with the Salt of the interpreter that runs this: one call per Salt version.

    <venv>/bin/python record.py <output root>

writes <output root>/saltcrypt/<version>.json and <output root>/saltwire/<version>.json. All keys in them are made by this run and
protect nothing. See record.sh.
"""

import contextlib
import json
import os
import socket
import sys
import tempfile
import threading
import time
import uuid

import lab
import vectors
import zmq  # noqa: F401  (before salt, which sets process-wide options)
from vectors import b64

import salt.crypt
import salt.payload
import salt.utils.event
import salt.utils.network
import salt.version

MINION, OTHER = "golden-minion", "golden-other"
CLI = (
    ("-L", MINION + "," + OTHER, "test.echo", "list target"),
    (MINION, "test.ping,test.echo", ",", "two"),
    (MINION, "cp.get_file_str", "salt://hello.txt"),
    (MINION, "pillar.items"),
    (MINION, "mine.update"),
    (MINION, "mine.get", "*", "test.ping"),
    (MINION, "event.send", "golden/event", "data={a: 1}"),
    ("-G", "golden:True", "test.echo", "grüße"),
)
SHA1, SHA224 = ("OAEP-SHA1", "PKCS1v15-SHA1"), ("OAEP-SHA224", "PKCS1v15-SHA224")


class Client:
    """What a minion sends, made with Salt's own classes, and what it finds in the answers."""

    def __init__(self, port, minion_id, pair, master_public, tmp):
        self.port, self.id, self.public = port, minion_id, salt.crypt.clean_key(pair[1])
        self.private = vectors.load_private(pair[0], tmp)
        self.master = vectors.load_public(master_public, tmp)
        self.session = self.aes = None

    def auth(self, algos=SHA1, version=3, token=None):
        nonce = uuid.uuid4().hex
        load = {"cmd": "_auth", "id": self.id, "nonce": nonce, "enc_algo": algos[0], "sig_algo": algos[1]}
        if token:
            load["token"] = self.master.encrypt(token, algos[0])
        load["pub"] = self.public
        body = salt.payload.dumps({"enc": "clear", "load": load, "version": version})
        reply = lab.request(self.port, body)
        outer = salt.payload.loads(reply)
        inner = outer["load"] if isinstance(outer, dict) and "load" in outer else None
        if isinstance(inner, (bytes, str)):
            inner = salt.payload.loads(salt.utils.stringutils.to_bytes(inner))
        if inner and "aes" in inner:
            self.aes = self.private.decrypt(inner["aes"], algos[0]).decode()
            self.session = self.private.decrypt(inner["session"], algos[0]).decode()
        return body, reply

    def call(self, load, version=3, algos=SHA1):
        """One aes request: version 3 under the session key, version 2 under the master's AES key."""
        key = self.session if version > 2 else self.aes
        load = dict(load, nonce=uuid.uuid4().hex, ts=int(time.time()), tok=self.private.encrypt(b"salt"), id=self.id)
        body = {"enc": "aes", "load": salt.crypt.Crypticle({}, key).dumps(load), "version": version}
        if version > 2:
            body["id"] = self.id
        body.update(enc_algo=algos[0], sig_algo=algos[1])
        body = salt.payload.dumps(body)
        return body, lab.request(self.port, body), key


def first_master(root, pairs, out):
    """The defaults: a real minion through a tap, publications, the event bus, refusals."""
    master = lab.Master(os.path.join(root, "m1"), *pairs["master"])
    master.accept(MINION, pairs["minion"][1])
    master.accept("golden-rejected", pairs["minion"][1], "minions_rejected")
    with contextlib.ExitStack() as stack:
        stack.callback(master.stop)
        master.start()
        tap, listener = lab.Tap(master.ret_port), lab.Listener(master.publish_port)
        bus = lab.BusTap(master.sock_dir)
        for thread in (tap, listener, bus):
            stack.callback(thread.close)
            thread.start()
        minion = lab.Minion(os.path.join(root, "minion"), MINION, *pairs["minion"], tap.port)
        stack.callback(minion.stop)
        lab.wait_for("the minion", lambda: b"True" in master.run("salt", "-t", "5", MINION, "test.ping").stdout)
        for args in CLI:
            master.run("salt", "-t", "10", *args)
        record_first(master, pairs, out, tap, listener, bus, root)


def record_first(master, pairs, out, tap, listener, bus, tmp):
    client = Client(master.ret_port, MINION, pairs["minion"], pairs["master"][1], tmp)
    for name, algos in (("accept-sha1", SHA1), ("accept-sha224", SHA224)):
        out.auth(name, *client.auth(algos, token=salt.crypt.Crypticle.generate_key_string()), algos)
    out.auth("accept-no-token", *client.auth(), SHA1)
    pend = Client(master.ret_port, "golden-pending", pairs["minion"], pairs["master"][1], tmp)
    out.auth("pending", *pend.auth(), SHA1)
    pend.id = "golden-rejected"
    out.auth("rejected", *pend.auth(), SHA1)
    out.auth("version-2-refused", *client.auth(version=2), SHA1)
    client.auth()
    for algos in (SHA1, SHA224):
        load = {"cmd": "_pillar", "grains": {"id": MINION}, "saltenv": "base", "pillarenv": None, "ver": "2"}
        out.request("pillar-" + algos[0], *client.call(load, algos=algos))
    body, reply, key = client.call({"cmd": "verify_minion", "token": b"x"})
    out.request("verify-minion", body, reply, key)
    wrong = salt.payload.loads(body)
    wrong["load"] = salt.crypt.Crypticle({}, salt.crypt.Crypticle.generate_key_string()).dumps({"cmd": "x"})
    wrong = salt.payload.dumps(wrong)
    out.request("wrong-session-key", wrong, lab.request(master.ret_port, wrong), "")
    ping = salt.payload.dumps({"enc": "clear", "load": {"cmd": "ping"}, "version": 3})
    out.request("clear-ping", ping, lab.request(master.ret_port, ping), "")

    for body, reply in tap.exchanges:
        envelope = salt.payload.loads(body)
        if envelope["enc"] == "clear":
            out.auth("minion", body, reply, SHA1)
        else:
            out.request("minion", body, reply, client.session)
    assert master.session(MINION) == client.session
    out.data["sessions"] = {MINION: client.session}
    out.data["publications"] = [{"key": client.aes, "body": b64(body)} for body in listener.bodies]
    out.data["bus"] = {"stream": b64(bytes(bus.stream[:48000]))}


def second_master(root, pairs, out):
    """master_sign_pubkey, SHA-224 publications, old payload versions, max_minions."""
    master = lab.Master(
        os.path.join(root, "m2"),
        *pairs["master"],
        master_sign_pubkey=True,
        publish_signing_algorithm="PKCS1v15-SHA224",
        minimum_auth_version=0,
        max_minions=1,
    )
    lab.write(os.path.join(master.pki, "master_sign.pem"), pairs["master_sign"][0], 0o400)
    lab.write(os.path.join(master.pki, "master_sign.pub"), pairs["master_sign"][1])
    for minion_id in (MINION, OTHER):
        master.accept(minion_id, pairs["minion"][1])
    with contextlib.ExitStack() as stack:
        stack.callback(master.stop)
        master.start()
        listener = lab.Listener(master.publish_port)
        stack.callback(listener.close)
        listener.start()
        addresses = salt.utils.network.ip_addrs()
        for minion_id in (OTHER, MINION):
            client = Client(master.ret_port, minion_id, pairs["minion"], pairs["master"][1], root)
            out.auth("accept-pub-sig", *client.auth(SHA224), SHA224)
            load = {"cmd": "_pillar", "grains": {"id": minion_id}, "saltenv": "base", "pillarenv": None, "ver": "2"}
            out.request("pillar-v2", *client.call(load, version=2))
            # Two minions whose grains name an address with a connection are more than max_minions. Not recorded: the
            # address is that of the recording host.
            client.call(dict(load, grains={"id": minion_id, "ipv4": addresses}))
        for version in (0, 1, 2):
            out.auth(f"accept-version-{version}", *client.auth(version=version), SHA1)
        load = {"cmd": "_return", "id": MINION, "jid": "20200101000000000000", "fun": "test.ping", "fun_args": [],
                "return": True, "retcode": 0, "success": True}
        out.request("return-v2", *client.call(load, version=2))
        full = Client(master.ret_port, "golden-third", pairs["minion"], pairs["master"][1], root)
        out.auth("full", *full.auth(), SHA1)
        lab.wait_for("a publication", lambda: master.run("salt", "-t", "1", MINION, "test.ping") and listener.bodies)
        out.data["publications"] += [{"key": client.aes, "body": b64(body)} for body in listener.bodies[:2]]


def bus_push(root):
    """What a program that fires an event writes to the bus's pull socket."""
    sock_dir = os.path.join(root, "push")
    os.makedirs(sock_dir)
    server, got = socket.socket(socket.AF_UNIX), bytearray()
    server.bind(os.path.join(sock_dir, "master_event_pull.ipc"))
    server.listen()

    def serve():
        conn, _ = server.accept()
        conn.settimeout(5)
        try:
            while data := conn.recv(65536):
                got.extend(data)
        except TimeoutError:
            pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    import salt.config

    opts = salt.config.master_config(None)
    opts.update(sock_dir=sock_dir, id="golden_master", __role="master")
    with salt.utils.event.SaltEvent("master", sock_dir, opts=opts, listen=False) as event:
        event.fire_event({"bytes": b"\x00\xff", "text": "grüße", "n": 1}, "golden/push")
        thread.join(8)
    return bytes(got)


class Output:
    def __init__(self, pairs):
        self.data = {"version": salt.version.__version__, "auth": [], "requests": []}
        self.data["keys"] = {k: {"private": v[0], "public": v[1]} for k, v in pairs.items()}

    def auth(self, name, body, reply, algos):
        row = {"name": name, "request": b64(body), "reply": b64(reply), "enc_algo": algos[0], "sig_algo": algos[1]}
        self.data["auth"].append(row)

    def request(self, name, body, reply, key):
        self.data["requests"].append({"name": name, "request": b64(body), "reply": b64(reply), "key": key})


def thin(data, limit=60, size=12000):
    """Keeps the vectors small: the first of the minion's many requests, none of them huge."""
    kept = [row for row in data["requests"] if len(row["request"]) + len(row["reply"]) < size]
    own = [row for row in kept if row["name"] != "minion"]
    data["requests"] = own + [row for row in kept if row["name"] == "minion"][:limit]
    data["publications"] = data["publications"][:6] + data["publications"][6:][-14:]


def main():
    version = salt.version.__version__
    with tempfile.TemporaryDirectory(prefix="sg", dir="/tmp") as root:
        pairs = {name: vectors.new_key() for name in ("master", "master_sign", "minion")}
        out = Output(pairs)
        first_master(root, pairs, out)
        second_master(root, pairs, out)
        out.data["bus"]["push"] = b64(bus_push(root))
        thin(out.data)
        results = {"saltwire": out.data, "saltcrypt": vectors.all_vectors(root)}
    for package, data in results.items():
        data["note"] = "All keys in this file were made for tests and protect nothing."
        path = os.path.join(sys.argv[1], package, version + ".json")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as fp:
            json.dump(data, fp, indent=0, sort_keys=True)
            fp.write("\n")
        print(f"{path}: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
