"""Does to a bank what Salt does. Usage: stock.py dump|hammer PATH SLOTS SLOT_SIZE KEY_SIZE [ROUNDS NAME]"""

import json
import random
import sys

import salt.utils.mmap_cache as mmap_cache

what, path, slots, slot_size, key_size = sys.argv[1:6]
cache = mmap_cache.MmapCache(path, size=int(slots), slot_size=int(slot_size), key_size=int(key_size))
if what == "hammer":
    rounds, name = sys.argv[6:8]
    rng, have = random.Random(name), {}
    for n in range(int(rounds)):
        key = "%s%d" % (name, rng.randrange(8))
        if rng.random() < 0.3:
            cache.delete(key)
            have.pop(key, None)
        else:
            have[key] = "%s-%d-" % (key, n) + "x" * rng.randrange(40)
            assert cache.put(key, have[key].encode()), key
        for k, v in have.items():
            assert cache.get(k) == v, (k, v, cache.get(k))
    print(json.dumps(have))
else:
    listed = dict(cache.list_items())
    assert sorted(listed) == sorted(cache.list_keys())
    for k, v in listed.items():
        assert cache.get(k) == v, k
    stats = cache.get_stats()
    print(json.dumps({"listed": listed, "occupied": stats["occupied"], "hidden": cache.get(".saltclusterd")}))
