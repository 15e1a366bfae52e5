// Package late keeps recent publications for minions that were between two connections when these were sent.
//
// A Memory owns the last publications, bounded by their age, number and bytes. Processes records which processes of
// minions have signed in. Address turns a publication into one that is safe to receive twice. Package fanout delivers
// late publications to their minions.
//
// # Minions that may get a job late
//
// A stock minion remembers the ids of the last jobs it received (minion_jid_queue_hwm, 100 of them: salt/minion.py
// _handle_decoded_payload) and drops one that it has already received. So the same process may be given a job again, as
// long as no more than so many others came in between: Memory keeps fewer. A process that has started since the job was
// published has no such memory. The process before it may have run the job, which may be why it ended (service.restart,
// system.reboot), so the new one must not be given the job. Every process signs in before it subscribes, and shows a
// token of its own each time it does (salt/crypt.py AsyncAuth.token), so the sign-ins of all nodes tell what started
// when. The proxies of a deltaproxy sign in after it has subscribed for them; they have its key and count as started
// with it. Subscribers are anonymous: all get the same copy, whose target leaves those minions out.
//
// # Vocabulary
//
// A process is one run of a minion's program, or of salt-call with a minion's key. A copy is a publication as it is
// given to subscribers that have just connected.
package late
