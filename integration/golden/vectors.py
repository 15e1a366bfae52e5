"""Vectors of Salt's cryptography, made with the classes of the installed Salt."""

import base64
import inspect
import os

import salt.crypt
import salt.payload
import salt.utils.crypt
import salt.utils.rsax931
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


def b64(data):
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()


def new_key(bits=2048):
    """A fresh test key: (private PEM, public PEM), in the forms Salt writes."""
    key = rsa.generate_private_key(65537, bits)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private.decode(), public.decode()


def _takes_path(cls):
    return "path" in inspect.signature(cls.__init__).parameters


def _file(pem, tmp):
    path = os.path.join(tmp, f"{abs(hash(pem))}.pem")
    with open(path, "w", encoding="ascii") as fp:
        fp.write(pem)
    return path


def load_private(pem, tmp):
    """PrivateKey takes a path in 3006 and 3007 and the bytes in 3008."""
    if not _takes_path(salt.crypt.PrivateKey):
        return salt.crypt.PrivateKey(pem.encode())
    return salt.crypt.PrivateKey(_file(pem, tmp))


def load_public(pem, tmp):
    if not _takes_path(salt.crypt.PublicKey):
        return salt.crypt.PublicKey(pem.encode())
    return salt.crypt.PublicKey(_file(pem, tmp))


def crypticles():
    out = []
    key = salt.crypt.Crypticle.generate_key_string()
    crypticle = salt.crypt.Crypticle({}, key)
    for nonce in (None, "0123456789abcdef0123456789abcdef"):
        for obj in (None, {}, {"cmd": "ping", "n": 1}, "x" * 7, "y" * 1000, {"bytes": bytes(range(256))}):
            out.append(
                {
                    "key": key,
                    "nonce": nonce or "",
                    "msgpack": b64(salt.payload.dumps(obj)),
                    "text": b64(crypticle.dumps(obj, nonce)),
                }
            )
    return out


def rsa_operations(key, private, public):
    """OAEP and PKCS#1 v1.5 with every algorithm, both directions in stock code."""
    oaep, pkcs1 = [], []
    for algo in salt.crypt.VALID_ENCRYPTION_ALGORITHMS:
        for msg in (b"", salt.crypt.Crypticle.generate_key_string().encode()):
            text = public.encrypt(msg, algo)
            assert private.decrypt(text, algo) == msg
            oaep.append({"key": key, "algo": algo, "msg": b64(msg), "text": b64(text)})
    for algo in salt.crypt.VALID_SIGNING_ALGORITHMS:
        for data in (b"", b"salt", bytes(range(256)) * 5):
            sig = private.sign(data, algo)
            assert public.verify(data, sig, algo)
            pkcs1.append({"key": key, "algo": algo, "data": b64(data), "sig": b64(sig)})
    return oaep, pkcs1


def x931(key, private_pem, public_pem, size):
    out = []
    signer = salt.utils.rsax931.RSAX931Signer(private_pem)
    verifier = salt.utils.rsax931.RSAX931Verifier(public_pem)
    for msg in (b"salt", b"", b"a" * 64, os.urandom(64), os.urandom(100), b"\xba" * 20, b"\xbb" * 20, b"q" * (size - 2)):
        sig = signer.sign(msg)
        try:
            verifies = verifier.verify(sig) == msg
        except ValueError:
            verifies = False  # OpenSSL does not take back all it makes: the empty message
        out.append({"key": key, "msg": b64(msg), "sig": b64(sig), "verifies": verifies})
    return out


def texts(public_pem, tmp):
    """What Salt makes of PEM texts: clean_key and the fingerprint salt-key prints."""
    odd = [
        public_pem,
        public_pem.replace("\n", "\r\n"),
        public_pem.strip(),
        "\n \t" + public_pem + "\r\n\r\n",
        "a\rb\x0bc\x0cd\x1ce\x85f\u2028g",
        "",
    ]
    clean = [{"in": b64(text), "out": b64(salt.crypt.clean_key(text))} for text in odd]
    path = os.path.join(tmp, "finger.pub")
    finger = []
    for text in odd[:4]:
        with open(path, "w", encoding="ascii", newline="") as fp:
            fp.write(text)
        finger.append({"pub": b64(text), "finger": salt.utils.crypt.pem_finger(path)})
    return clean, finger


def pub_sig(key, private, public_pem):
    import binascii

    out = []
    text = salt.crypt.clean_key(public_pem)
    for algo in salt.crypt.VALID_SIGNING_ALGORITHMS:
        sig = binascii.b2a_base64(private.sign(text.encode(), algo)).decode()
        out.append({"key": key, "algo": algo, "text": b64(text), "pub_sig": sig})
    return out


def all_vectors(tmp):
    keys = {"test-2048": new_key(2048), "test-1024": new_key(1024)}
    result = {"keys": {k: {"private": v[0], "public": v[1]} for k, v in keys.items()}}
    result["crypticle"] = crypticles()
    result["x931"] = []
    for name, bits in (("test-2048", 2048), ("test-1024", 1024)):
        result["x931"] += x931(name, *keys[name], bits // 8)
    private_pem, public_pem = keys["test-2048"]
    private, public = load_private(private_pem, tmp), load_public(public_pem, tmp)
    result["oaep"], result["pkcs1"] = rsa_operations("test-2048", private, public)
    result["clean"], result["finger"] = texts(public_pem, tmp)
    result["pub_sig"] = pub_sig("test-2048", private, public_pem)
    return result
