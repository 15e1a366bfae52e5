"""Records what a stock minion and a stock master with `transport: tcp` say to each other, byte by byte.

    <venv>/bin/python recordtcp.py <output root>

writes <output root>/tcpframe/<version>.json. All keys in it are made by this run and protect nothing. See record.sh.
"""

import json
import os
import socket
import sys
import tempfile
import threading

import lab
import vectors
from vectors import b64

import salt.payload
import salt.transport.frame
import salt.utils.msgpack
import salt.utils.stringutils
import salt.version

MINION = "golden-minion"
CLI = (("*", "test.ping"), ("-L", MINION, "test.echo", "list target"))


class Relay(threading.Thread):
    """Passes bytes on to a port and keeps both directions of each connection."""

    def __init__(self, upstream):
        super().__init__(daemon=True)
        self.upstream, self.streams = upstream, []
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]

    def run(self):
        while True:
            try:
                front, _ = self.sock.accept()
            except OSError:
                return
            back = socket.create_connection(("127.0.0.1", self.upstream))
            stream = {"minion": bytearray(), "master": bytearray()}
            self.streams.append(stream)
            for side, source, target in (("minion", front, back), ("master", back, front)):
                threading.Thread(target=self._pass, args=(stream[side], source, target), daemon=True).start()

    @staticmethod
    def _pass(kept, source, target):
        try:
            while data := source.recv(65536):
                kept += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.sock.close()

    def record(self):
        return [{side: b64(bytes(data)) for side, data in s.items()} for s in self.streams if s["minion"]]


class Master(lab.Master):
    def _answers(self, port):
        if self.daemon.proc.poll() is not None:
            raise RuntimeError("salt-master ended")
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as sock:
                sock.settimeout(2)
                body = {"enc": "clear", "load": {"cmd": "ping"}, "version": 3}
                sock.sendall(salt.utils.msgpack.dumps({"head": {"mid": 1}, "body": body}))
                return sock.recv(1) != b""
        except OSError:
            return False


def aes_key(streams, private, tmp):
    """The key that the master gave the minion when it signed in, as the minion finds it."""
    key = vectors.load_private(private, tmp)
    for stream in streams:
        unpacker = salt.utils.msgpack.Unpacker()
        unpacker.feed(bytes(stream["master"]))
        for frame in unpacker:
            body = salt.transport.frame.decode_embedded_strs(frame)["body"]
            if isinstance(body, dict) and body.get("enc") == "clear" and "sig" in body:
                inner = salt.payload.loads(salt.utils.stringutils.to_bytes(body["load"]))
                if "aes" in inner:
                    return key.decrypt(inner["aes"], "OAEP-SHA1").decode()
    raise RuntimeError("no sign-in was recorded")


def main():
    out, version = sys.argv[1], salt.version.__version__
    with tempfile.TemporaryDirectory() as tmp:
        masterpair, pair = vectors.new_key(), vectors.new_key()
        master = Master(os.path.join(tmp, "m"), *masterpair, transport="tcp")
        master.accept(MINION, pair[1])
        requests = publications = minion = None
        try:
            master.start()
            requests, publications = Relay(master.ret_port), Relay(master.publish_port)
            requests.start()
            publications.start()
            minion = lab.Minion(
                os.path.join(tmp, "n"), MINION, *pair, requests.port, transport="tcp", publish_port=publications.port
            )
            lab.wait_for("a subscription", lambda: any(s["minion"] for s in publications.streams))
            lab.wait_for("an answer", lambda: b"True" in master.run("salt", "*", "test.ping", "-t", "5").stdout)
            for args in CLI:
                master.run("salt", *args, "-t", "20")
            record = {
                "version": version, "id": MINION, "public": pair[1],
                "aes": aes_key(requests.streams, pair[0], tmp),
                "requests": requests.record(), "publications": publications.record(),
            }
        finally:
            for part in (minion, master, requests, publications):
                if part is not None:
                    (part.stop if hasattr(part, "stop") else part.close)()
    os.makedirs(os.path.join(out, "tcpframe"), exist_ok=True)
    with open(os.path.join(out, "tcpframe", version + ".json"), "w", encoding="ascii") as fp:
        json.dump(record, fp, indent=1)
        fp.write("\n")


if __name__ == "__main__":
    main()
