package doctor

import "strings"

// Symptom is what Salt prints, and what is behind it when the masters are a cluster.
type Symptom struct {
	Words  string  `json:"words"` // as Salt prints them, from the beginning of a sentence
	Where  string  `json:"where"` // who prints it
	Causes []Cause `json:"causes"`
}

// Cause is one explanation, the likeliest first.
type Cause struct {
	Cause string `json:"cause"`
	Look  string `json:"look"` // a command that tells whether it is so
	Then  string `json:"then"` // what to do
}

// Symptoms are those that operators search for. docs/how-to/troubleshoot.md is made of them.
func Symptoms() []Symptom {
	return []Symptom{
		{"Minion did not return. [No response]", "salt, on the master", []Cause{
			{"All minions say so: saltclusterd on this host has ended. The salt-master publishes to saltclusterd only; what it publishes meanwhile reaches no minion, and when saltclusterd is back only the jobs of the last 15 seconds do (docs/explanation/guarantees.md, Jobs given while saltclusterd is down). Minions are with the other nodes.", "systemctl status saltclusterd", "systemctl start saltclusterd, then give the command again; or give it on another node"},
			{"The minion is at work for longer than the command line waits.", "saltclusterctl jobs show JID",
				"wait, or salt --timeout 60; the return arrives in the job cache of every master all the same"},
			{"A load balancer or firewall has cut the minion's connection to 4505, and the minion has not noticed.",
				"saltclusterctl doctor --haproxy /etc/haproxy/haproxy.cfg", "the timeouts and on-marked-down that it names"},
			{"The minion has just been handed over (drain, a node that stopped): Salt 3006 takes 1 to 22 seconds to come back, and runs the job then.", "saltclusterctl jobs show JID", "wait; the return arrives in the job cache"},
			{"Salt 3008: the minion's connection to 4505 broke in the very moment in which it signed in anew (a key had just been deleted). Its own code then forgets to listen, and says nothing (seen with 3008.3).", "saltclusterctl minions MINION", "if it is connected and nothing is heard of it, on the minion: systemctl restart salt-minion; zmq_monitor: False in its configuration avoids it"},
			{"Small jobs work, large ones do not: packets of full size are lost on the way.", "saltclusterctl doctor",
				"the MTU, as it says under probe"},
		}},
		{"Minion did not return. [Not connected]", "salt, on the master", []Cause{
			{"All minions say so: saltclusterd on this host has ended, as under [No response].", "systemctl status saltclusterd",
				"systemctl start saltclusterd, then give the command again; or give it on another node"},
			{"The minion is not running, or cannot reach the address it has as its master.", "saltclusterctl minions MINION",
				"on the minion: systemctl status salt-minion; nc -vz MASTER 4505; nc -vz MASTER 4506"},
			{"Or it is busy: these words go by the addresses that this host's kernel sees, which behind a load balancer are not the minions'.", "saltclusterctl minions --present MINION", "if it is there, as [No response]"},
		}},
		{"Salt request timed out", "salt, salt-call and minions", []Cause{
			{"The local salt-master is down or hung; commands given on this host need it.", "saltclusterctl status",
				"systemctl restart salt-master; minions meanwhile are served by the other nodes' masters"},
			{"HAProxy sends requests to a node that is not there, or cuts them before the master has answered.",
				"saltclusterctl doctor --haproxy /etc/haproxy/haproxy.cfg", "check on every server line, and timeouts above forward_timeout"},
			{"No node has a salt-master that works.", "saltclusterctl members", "start one of them"},
			{"The clock of a minion is wrong and the master has request_server_ttl: it drops the request.",
				"grep 'expired ttl' /var/log/salt/master", "time synchronisation on the minion"},
		}},
		{"Attempt to authenticate with the salt master failed with timeout error", "minions", []Cause{
			{"Nothing answers on 4506 at the address the minion has.", "saltclusterctl doctor --via ADDRESS",
				"what it says under probe"},
			{"Very many minions sign in at once; each is served in turn.", "saltclusterctl status",
				"nothing: they ask again; signin_cpu_percent gives sign-ins more of the machine"},
			{"The cluster has no majority, and the minion's key is unknown or was changed lately.", "saltclusterctl status",
				"start the nodes it names"},
		}},
		{"Invalid master key", "minions", []Cause{
			{"The minion has master_finger, or a pinned minion_master.pub, of another master than this cluster.",
				"saltclusterctl doctor", "bootstrap on the master whose key the minions know: its master.pem becomes the cluster's identity"},
			{"A node's salt-master was not restarted after it joined: it still presents its old key to who reaches it directly.",
				"saltclusterctl status", "systemctl restart salt-master on that node"},
			{"The load balancer sends minions to a master that is not a member.",
				"saltclusterctl doctor --haproxy /etc/haproxy/haproxy.cfg", "remove that server, or let it join"},
		}},
		{"The master key has changed, the salt master could have been subverted, verify salt master's public key", "minions",
			[]Cause{
				{"The same as Invalid master key: the key that was pinned at the first contact is not the one that is presented now.", "salt-key -f master.pub; on the minion: salt-call --local key.finger_master", "where the two differ for a reason you know: remove /etc/salt/pki/minion/minion_master.pub on the minion and restart it"},
				{"The cluster was made anew (bootstrap) instead of restored from a snapshot.", "saltclusterctl status",
					"saltclusterctl snapshot restore on an empty node keeps the identity"},
			}},
		{"The Salt Master has rejected this minion's public key", "minions", []Cause{
			{"The key was rejected, or one with another content is accepted under this id (denied).",
				"saltclusterctl keys show MINION", "saltclusterctl keys delete MINION, then accept the new one, after having compared salt-call --local key.finger"},
			{"The minion was installed anew and has a new key.", "saltclusterctl keys show MINION", "the same"},
		}},
		{"The Salt Master has cached the public key for this node", "minions", []Cause{
			{"The key waits for acceptance.", "saltclusterctl keys list pending",
				"salt-key -a MINION on any master, or saltclusterctl keys accept MINION"},
			{"It was accepted, and the cluster has no majority: decisions about keys wait.", "saltclusterctl status",
				"start the nodes it names"},
			{"Salt 3008: it was accepted with salt-key in the very moment in which the minion signed in. salt-key takes a key out of its place before it has a new one, and the salt-master takes it for new (2 of 150 with a minion that signs in all the time, seen with 3008.3).", "saltclusterctl keys list pending", "accept it once more"},
		}},
		{"Failed to authenticate! This is most likely because this user is not permitted to execute commands",
			"salt, on the master", []Cause{
				{"cachedir is shared between masters: each makes .root_key there when it starts, and the last one wins.",
					"ls -l /var/cache/salt/master/.root_key", "keep cachedir on each master's own disk, and share only jobs (docs/how-to/shared-filesystem.md)"},
				{"The command runs as another user than the master, and publisher_acl does not name it.",
					"id; grep -r publisher_acl /etc/salt", "sudo, or publisher_acl"},
			}},
		{"Authentication failure of type \"token\" occurred", "salt -T, salt-api", []Cause{
			{"The token has expired by the clock of the master that was asked.", "saltclusterctl doctor",
				"time synchronisation between the masters"},
			{"The token was made a moment ago on another master, and that one cannot be reached.", "saltclusterctl verify",
				"the nodes it names"},
		}},
		{"No minions matched the target", "salt, on the master", []Cause{
			{"The target is by grain or pillar, and this master does not know those of the minion yet.", "saltclusterctl verify",
				"salt MINION saltutil.refresh_grains; the node may still be catching up (saltclusterctl members)"},
			{"The minion's key is not accepted.", "saltclusterctl keys list", "accept it"},
		}},
		{"Unable to connect to the salt master publisher", "salt, on the master", []Cause{
			{"The local salt-master is not running.", "saltclusterctl doctor", "systemctl start salt-master"},
			{"The salt-master was moved to loopback, and the command line reads another configuration.",
				"salt-run config.get interface", "the drop-in zz-saltclusterd.conf belongs into the master.d that both read"},
		}},
		{"Message signature failed to validate", "minions", []Cause{
			{"sign_pub_messages is on, and the minion has another master.pub than the cluster.", "saltclusterctl doctor",
				"as Invalid master key"},
		}},
		{"A message with an invalid serial was received", "minions", []Cause{
			{"The cluster's AES key has just changed (a key was deleted, or rotate): a 3006 minion that signs in while several jobs wait opens the newest first and drops the others.", "saltclusterctl status", "nothing: saltclusterd gives the minion the others once more six seconds later"},
			{"A node's clock was wrong, and it has stamped jobs with serials of the future.", "saltclusterctl status",
				"time synchronisation on the node that it names; minions accept jobs again within a minute"},
		}},
		{"Duplicate return from minion", "saltclusterd, in the words of a salt-master", []Cause{
			{"Two hosts have the same id and key: a virtual machine was cloned with its /etc/salt. Each job runs on both, and the return that comes first is the one that is stored.", "salt MINION network.ip_addrs, a few times", "on the clone: systemctl stop salt-minion; remove /etc/salt/minion_id and /etc/salt/pki/minion; systemctl start salt-minion"},
			{"The host was restored, or installed anew, while its former self still runs.", "saltclusterctl minions MINION",
				"stop the former one"},
		}},
		{"DNS lookup or connection check of", "minions", []Cause{
			{"The name the minion has as its master does not resolve.", "getent hosts NAME, on the minion",
				"DNS, or the address of the load balancer in the minion's configuration"},
		}},
	}
}

// Explain finds the symptoms that a line of a log or a screen shows, by words of either in the other.
func Explain(line string) []Symptom {
	wanted := foldText(line)
	var out []Symptom
	for _, s := range Symptoms() {
		if words := foldText(s.Words); wanted != "" && (strings.Contains(wanted, words) || strings.Contains(words, wanted)) {
			out = append(out, s)
		}
	}
	return out
}

func foldText(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }
