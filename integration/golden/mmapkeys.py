"""Records key stores as `keys.cache_driver: mmap_key` makes them, with the Salt of the interpreter that runs this.

    <venv>/bin/python mmapkeys.py <output root>

writes <output root>/mmapkeys/<store>/, each with the files of its banks and expected.json: what Salt itself reads from them. See
record.sh. The keys in them are text, and protect nothing.
"""

import json
import os
import sys

import xxhash

import salt.cache.mmap_key as driver
import salt.utils.mmap_cache as mmap_cache

PEM = "-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----"


def pem(n, length=300):
    return PEM % (chr(ord("A") + n % 26) * length)


def minion_keys(directory):
    """The banks as a master and salt-key leave them."""
    os.makedirs(directory)
    driver.__opts__ = {
        "pki_dir": directory, "mmap_key_size": 67, "cluster_id": None, "user": "root", "__role": "master",
    }
    for n in range(24):
        driver.store("keys", "minion-%d" % n, {"state": "pending", "pub": pem(n)}, directory)
    for n in range(0, 24, 2):
        driver.store("keys", "minion-%d" % n, {"state": "accepted", "pub": pem(n)}, directory)
    for n in (3, 9):
        driver.store("keys", "minion-%d" % n, {"state": "rejected", "pub": pem(n, 200)}, directory)
    for n in (4, 5, 6):
        driver.flush_("keys", "minion-%d" % n, directory)
    driver.store("keys", "minion-5", {"state": "pending", "pub": pem(7, 500)}, directory)
    driver.store("keys", "minion-8", {"state": "accepted", "pub": pem(8, 700)}, directory)
    driver.store("keys", "grüße", {"state": "accepted", "pub": pem(1)}, directory)
    driver.store("keys", "x" * 70, {"state": "pending", "pub": pem(2)}, directory)
    driver.store("denied_keys", "minion-1", [pem(11), pem(12)], directory)
    driver.store("denied_keys", "minion-2", [pem(12)], directory)
    driver.flush_("denied_keys", "minion-2", directory)
    driver.store("master_keys", "vm.pem", pem(20, 1600), directory)
    driver.store("master_keys", "vm.pub", pem(21), directory)
    expected = {"slots": 67, "slot_size": 96, "key_size": 64}
    for bank in ("keys", "denied_keys"):
        expected[bank] = driver.list_all(bank, directory, include_data=True)
    expected["master_keys"] = {k: driver.fetch("master_keys", k, directory) for k in driver.list_("master_keys", directory)}
    return expected


def crowded(directory):
    """A small table of which each slot has been used, with several segments."""
    os.makedirs(directory)
    cache = mmap_cache.MmapCache(
        os.path.join(directory, ".mmap_keys.idx"), size=11, slot_size=48, key_size=16, max_segment_bytes=256
    )
    for n in range(10):
        cache.put("k%d" % n, b"\x01" + b"v%d" % n * (5 + n))
    for n in (1, 4, 7):
        cache.delete("k%d" % n)
    cache.put("other", b"\x02" + b"o" * 90)
    cache.put("k4", b"\x03" + b"again" * 9)
    cache.put("k2", b"\x01" + b"longer" * 20)
    cache.put("k3", b"\x01s")
    expected = {"slots": 11, "slot_size": 48, "key_size": 16}
    expected["keys"] = {k: v for k, v in cache.list_items()}
    return expected


def main(root):
    os.umask(0o022)
    out = os.path.join(root, "mmapkeys")
    for make in (minion_keys, crowded):
        directory = os.path.join(out, make.__name__)
        expected = make(directory)
        for name in os.listdir(directory):  # the lock is made by whoever needs it
            if name.endswith(".lock"):
                os.remove(os.path.join(directory, name))
        with open(os.path.join(directory, "expected.json"), "w", encoding="utf-8") as f:
            json.dump(expected, f, indent=1, sort_keys=True)
            f.write("\n")
    hashes = {str(n): "%016x" % xxhash.xxh3_64_intdigest(bytes(i % 251 for i in range(n))) for n in (
        *range(0, 40), 64, 65, 127, 128, 129, 200, 239, 240, 241, 242, 255, 256, 451, 452, 512, 1023, 1024, 1025, 1679, 3000, 16385)}
    with open(os.path.join(out, "xxh3.json"), "w", encoding="utf-8") as f:
        json.dump(hashes, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
