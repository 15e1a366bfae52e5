// Package jobcache does what a stock salt-master does with a return: it decides which files of the job cache and which
// events a _return or _syndic_return makes, and writes and fires them. Python is not needed for it, nor that the master
// is up. It also decides which events a _minion_event makes (sidecar/events fires those).
//
// In: the decrypted load and the master's effective options. Out: a Plan (pure: no clock, no disk, so that a journal
// can be replayed and several nodes come to the same files), which Cache.Apply writes and Firer.Fire fires.
//
// The model is salt/master.py:AESFuncs._return, _syndic_return and _minion_event, salt/utils/job.py:store_job,
// salt/returners/local_cache.py, salt/utils/event.py:SaltEvent.fire_event and fire_ret_load, salt/utils/dicttrim.py; of
// 3006, 3007 and 3008. Whatever a stock master does in another way than by its local job cache, and every load on which
// its code would stumble, is not for this package: Native and Plan then say so with a reason (NeedsPython), and the
// request belongs to the master itself.
//
// Promises: applying a plan again changes nothing; a kill at any time leaves a minion's directory whole or absent,
// never half (a stock master takes a half one for an earlier return and drops the retry); files are owned and readable
// as if the master had written them; hostile loads cost no more than their size.
//
// The reverse is Cache.Published: the answer to a minion that asks for the returns of a job which it has published.
//
// Vocabulary is Salt's: load, jid, tgt, return.p, .load.p. Raw is a value's msgpack as on disk (use_bin_type=True).
package jobcache
