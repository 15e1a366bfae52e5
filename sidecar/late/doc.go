// Package late keeps recent publications for minions that were between two connections at that time.
//
// A Memory owns the last publications, bounded by their age, number and bytes. Processes owns which processes of
// minions have signed in. Address turns a publication into one that is safe to receive twice. Package fanout delivers
// late publications to their minions.
//
// # Minions that may get a job late
//
// A stock minion remembers the ids of the last jobs it was given (minion_jid_queue_hwm, 100 of them: salt/minion.py
// _handle_decoded_payload) and drops one that it has had. So the same process may be given a job again, as long as no
// more than so many others came since: Memory keeps fewer. A process that has started since the job was published has
// no such memory, and the one before it may have run the job, which may be why it has ended (service.restart,
// system.reboot). It must not be given the job. Every process signs in before it subscribes, and shows a token of its
// own each time it does (salt/crypt.py AsyncAuth.token), so what started when is known from the sign-ins of all nodes.
// The proxies of a deltaproxy sign in after it has subscribed for them; they have its key and count as started with it.
// Subscribers are anonymous: all get the same copy, whose target leaves those minions out.
//
// # Vocabulary
//
// A process is one run of a minion's program, or of salt-call with a minion's key. A copy is a publication as it is
// given to those which have just come.
package late
