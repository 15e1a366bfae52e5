// Package jobcache does what a stock salt-master does with a return: it decides which files of the job cache and which
// events a _return or _syndic_return makes, and writes and fires them. Neither Python nor a running master is needed.
// It also decides which events a _minion_event makes (sidecar/events fires those).
//
// In: the decrypted load and the master's effective options. Out: a Plan (pure: no clock, no disk, so that a journal
// can be replayed and several nodes make the same files), which Cache.Apply writes and Firer.Fire fires.
//
// The model is salt/master.py:AESFuncs._return, _syndic_return and _minion_event, salt/utils/job.py:store_job,
// salt/returners/local_cache.py, salt/utils/event.py:SaltEvent.fire_event and fire_ret_load, salt/utils/dicttrim.py; of
// 3006, 3007 and 3008. This package does not handle what a stock master does other than through its local job cache,
// nor loads that make its code fail: Native and Plan then return a reason (NeedsPython), and the request goes to the
// master itself.
//
// Promises: applying a plan again changes nothing; a kill at any time leaves a minion's directory whole or absent,
// never half-written (a stock master takes a half-written one for an earlier return and drops the retry); files have
// the owner and mode that the master would have given them; hostile loads cost no more than their size.
//
// The reverse is Cache.Published: the answer to a minion that asks for the returns of a job that it has published.
//
// Vocabulary is Salt's: load, jid, tgt, return.p, .load.p. Raw is a value's msgpack as on disk (use_bin_type=True).
package jobcache
