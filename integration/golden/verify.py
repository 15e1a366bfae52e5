"""Stock Salt's client side as a service for Go tests: what Go wrote is judged by Salt's own classes.

    <venv>/bin/python verify.py <empty directory>

One JSON request per line on stdin, {"op": …}, one JSON answer per line on stdout, {"ok": …} or {"error": …}; bytes are
base64. sidecar/saltwire/stock_test.go speaks to it.
"""

import asyncio
import base64
import inspect
import json
import os
import sys
import uuid

import salt.channel.client
import salt.config
import salt.crypt
import salt.payload
import salt.utils.rsax931
import salt.utils.stringutils


def b64(data):
    return base64.b64encode(salt.utils.stringutils.to_bytes(data)).decode()


def unb64(text):
    return base64.b64decode(text)


def write(path, text):
    with open(path, "w", encoding="ascii") as fp:
        fp.write(text)


def finish(result):
    """Runs a coroutine of either world: tornado's (3006, 3007) or asyncio's."""
    if inspect.iscoroutine(result):
        return asyncio.run(result)
    return result.result() if hasattr(result, "result") else result


class Minion:
    """A minion's authentication state and channels, without any socket."""

    def __init__(self, root, private, public, pinned=None, sign_key=None, options=None):
        pki = os.path.join(root, uuid.uuid4().hex)
        os.makedirs(os.path.join(pki, "etc"))
        write(os.path.join(pki, "minion.pem"), private)
        write(os.path.join(pki, "minion.pub"), public)
        if pinned:
            write(os.path.join(pki, "minion_master.pub"), pinned)
        if sign_key:
            write(os.path.join(pki, "master_sign.pub"), sign_key)
        self.opts = salt.config.minion_config(None, minion_id="m1")
        self.opts.update(id="m1", pki_dir=pki, cachedir=pki, master_uri="tcp://127.0.0.1:4506", master="127.0.0.1",
                         master_ip="127.0.0.1", sign_pub_messages=True, conf_file="", __role="minion", rejected_retry=True)
        self.opts["keys.cache_driver"] = "localfs_key"
        self.opts.update(options or {})
        self.auth = salt.crypt.SAuth(self.opts)
        self.sent = None

    def sign_in(self):
        self.sent = self.auth.minion_sign_in_payload()
        return b64(salt.payload.dumps({"enc": "clear", "load": self.sent, "version": 3}))

    def signed_in(self, body):
        """handle_signin_response, and what AsyncAuth._authenticate then does with it."""
        result = self.auth.handle_signin_response(self.sent, salt.payload.loads(unb64(body)))
        if not isinstance(result, dict):
            return {"result": result}
        self.auth._creds = result
        self.auth._crypticle = salt.crypt.Crypticle(self.opts, result["aes"])
        self.auth._session_crypticle = salt.crypt.Crypticle(self.opts, result["session"])
        text = {k: salt.utils.stringutils.to_str(result[k]) for k in ("aes", "session")}
        return dict(text, result="accepted", publish_port=result["publish_port"])

    def _channel(self, cls):
        channel = cls.__new__(cls)
        channel.opts, channel.auth = self.opts, self.auth
        channel.master_pubkey_path = os.path.join(self.opts["pki_dir"], "minion_master.pub")
        return channel

    def publication(self, body):
        channel = self._channel(salt.channel.client.AsyncPubChannel)
        payload = finish(channel._decode_payload(salt.payload.loads(unb64(body))))
        return salt.payload.loads(salt.payload.dumps(payload["load"]))

    def request(self, load):
        channel = self._channel(salt.channel.client.AsyncReqChannel)
        cls = type(channel)
        # The properties depend on internals that differ by version; what they say here does not.
        vars_ = {"crypt": "aes"}
        channel.__class__ = type("Channel", (cls,), vars_)
        self.nonce = uuid.uuid4().hex
        crypticle = self.auth._session_crypticle
        return b64(salt.payload.dumps(channel._package_load(load, self.nonce, crypticle)))

    def reply(self, body):
        """What _crypted_transfer does with the reply to request()."""
        return self.auth._session_crypticle.loads(salt.payload.loads(unb64(body)), False, nonce=self.nonce)


class Service:
    def __init__(self, root):
        self.root, self.minion = root, None

    def new(self, **kwargs):
        self.minion = Minion(self.root, **kwargs)
        return True

    def sign_in(self):
        return self.minion.sign_in()

    def signed_in(self, body):
        return self.minion.signed_in(body)

    def publication(self, body):
        return self.minion.publication(body)

    def request(self, load):
        return self.minion.request(load)

    def reply(self, body):
        return self.minion.reply(body)

    def open(self, key, text, nonce):
        return salt.crypt.Crypticle({}, key).loads(unb64(text), nonce=nonce)

    def x931(self, public, sig):
        return b64(salt.utils.rsax931.RSAX931Verifier(public).verify(unb64(sig)))

    def loads(self, body):
        """Decodes msgpack and encodes it again as stock programs do, in wire and disk style."""
        obj = salt.payload.loads(unb64(body))
        return {"wire": b64(salt.payload.dumps(obj)), "disk": b64(salt.payload.dumps(obj, use_bin_type=True))}


def main():
    service, out = Service(sys.argv[1]), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing but answers goes to the real stdout
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = {"ok": getattr(service, asked.pop("op"))(**asked)}
        except BaseException as exc:  # pylint: disable=broad-except
            answer = {"error": f"{type(exc).__name__}: {exc}"}
        out.write(json.dumps(answer, default=str) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
