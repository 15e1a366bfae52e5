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
			{"It is so for all minions: saltclusterd on this host has ended. The salt-master publishes to saltclusterd only, so its jobs reach no minion. When saltclusterd is back, it publishes the jobs of the last 15 seconds (docs/explanation/guarantees.md, Jobs given while saltclusterd is down). The minions are connected to the other nodes.", "systemctl status saltclusterd", "systemctl start saltclusterd, then give the command again; or use another node"},
			{"The minion works for longer than the command line waits.", "saltclusterctl jobs show JID",
				"wait, or use salt --timeout 60; the return will be in the job cache of every master"},
			{"A load balancer or firewall has cut the minion's connection to 4505, and the minion has not noticed.",
				"saltclusterctl doctor --haproxy /etc/haproxy/haproxy.cfg", "correct the timeouts and on-marked-down that it names"},
			{"The minion is moving to another node, because its node was drained or stopped. Salt 3006 takes 1 to 22 seconds and runs the job then.", "saltclusterctl jobs show JID", "wait; the return will be in the job cache"},
			{"Salt 3008: the minion's connection to 4505 broke while it signed in again, just after a key was deleted. A fault of its code then leaves it without a subscription and without a message (seen with 3008.3).", "saltclusterctl minions MINION", "if it is connected but silent, on the minion: systemctl restart salt-minion. zmq_monitor: False in its configuration avoids it"},
			{"Small jobs work and large ones do not: the network drops packets of full size.", "saltclusterctl doctor",
				"correct the MTU, as it says under probe"},
		}},
		{"Minion did not return. [Not connected]", "salt, on the master", []Cause{
			{"It is so for all minions: saltclusterd on this host has ended, as under [No response].", "systemctl status saltclusterd",
				"systemctl start saltclusterd, then give the command again; or use another node"},
			{"The minion is not running, or cannot reach its master's address.", "saltclusterctl minions MINION",
				"on the minion: systemctl status salt-minion; nc -vz MASTER 4505; nc -vz MASTER 4506"},
			{"The minion is busy. Salt guesses from the addresses that this host's kernel sees, which are the load balancer's.", "saltclusterctl minions --present MINION", "if it is present, see [No response]"},
		}},
		{"Salt request timed out", "salt, salt-call and minions", []Cause{
			{"The local salt-master is down or hangs. Commands typed on this host need it.", "saltclusterctl status",
				"systemctl restart salt-master; the other nodes' masters serve the minions meanwhile"},
			{"HAProxy sends requests to a node that is down, or cuts them before the master has answered.",
				"saltclusterctl doctor --haproxy /etc/haproxy/haproxy.cfg", "add check to every server line, and set timeouts above forward_timeout"},
			{"No node has a working salt-master.", "saltclusterctl members", "start one of them"},
			{"A minion's clock is wrong, and the master has request_server_ttl: it drops the request.",
				"grep 'expired ttl' /var/log/salt/master", "synchronise the minion's clock"},
		}},
		{"Attempt to authenticate with the salt master failed with timeout error", "minions", []Cause{
			{"Nothing answers on 4506 at the minion's master address.", "saltclusterctl doctor --via ADDRESS",
				"do what it says under probe"},
			{"Very many minions sign in at once. Each is served in turn.", "saltclusterctl status",
				"nothing: they ask again. signin_cpu_percent gives sign-ins more of the CPUs"},
			{"The cluster has no majority, and the minion's key is unknown or has changed.", "saltclusterctl status",
				"start the nodes it names"},
		}},
		{"Invalid master key", "minions", []Cause{
			{"The minion expects the key of another master: by master_finger or by its minion_master.pub.",
				"saltclusterctl doctor", "run saltclusterctl bootstrap on the master whose key the minions know: its master.pem becomes the cluster's identity"},
			{"A salt-master was not restarted after its node joined. It still presents its old key to minions that reach it directly.",
				"saltclusterctl status", "systemctl restart salt-master on that node"},
			{"The load balancer sends minions to a master that is not a member.",
				"saltclusterctl doctor --haproxy /etc/haproxy/haproxy.cfg", "remove that server, or let that master join"},
		}},
		{"The master key has changed, the salt master could have been subverted, verify salt master's public key", "minions",
			[]Cause{
				{"As Invalid master key: the key that the minion pinned at its first contact is not the present one.", "salt-key -f master.pub; on the minion: salt-call --local key.finger_master", "if you know why the two differ: remove /etc/salt/pki/minion/minion_master.pub on the minion and restart it"},
				{"The cluster was founded again (bootstrap) instead of restored from a snapshot.", "saltclusterctl status",
					"saltclusterctl snapshot restore on an empty node brings the identity back"},
			}},
		{"The Salt Master has rejected this minion's public key", "minions", []Cause{
			{"The key was rejected, or another key is accepted under this id (denied).",
				"saltclusterctl keys show MINION", "compare salt-call --local key.finger; then saltclusterctl keys delete MINION, and accept the new key"},
			{"The minion was reinstalled and has a new key.", "saltclusterctl keys show MINION", "the same"},
		}},
		{"The Salt Master has cached the public key for this node", "minions", []Cause{
			{"The key is pending.", "saltclusterctl keys list pending",
				"salt-key -a MINION on any master, or saltclusterctl keys accept MINION"},
			{"It was accepted, but the cluster has no majority, and decisions about keys wait.", "saltclusterctl status",
				"start the nodes it names"},
			{"Salt 3008: it was accepted with salt-key while the minion signed in. salt-key removes a key from its place before it writes the new one, and the salt-master takes the minion for new (2 of 150 with a minion that signs in all the time, seen with 3008.3).", "saltclusterctl keys list pending", "accept it again"},
		}},
		{"Failed to authenticate! This is most likely because this user is not permitted to execute commands",
			"salt, on the master", []Cause{
				{"cachedir is shared between masters. Each writes .root_key there when it starts, and the last one wins.",
					"ls -l /var/cache/salt/master/.root_key", "keep cachedir on each master's own disk, and share only jobs (docs/how-to/shared-filesystem.md)"},
				{"The command runs as another user than the master, and publisher_acl does not name this user.",
					"id; grep -r publisher_acl /etc/salt", "use sudo, or add the user to publisher_acl"},
			}},
		{"Authentication failure of type \"token\" occurred", "salt -T, salt-api", []Cause{
			{"The token has expired by the clock of this master.", "saltclusterctl doctor",
				"synchronise the masters' clocks"},
			{"The token was created a moment ago on another master, which cannot be reached.", "saltclusterctl verify",
				"start the nodes it names"},
		}},
		{"No minions matched the target", "salt, on the master", []Cause{
			{"The target uses grains or pillars that this master does not know yet.", "saltclusterctl verify",
				"salt MINION saltutil.refresh_grains; the node may still be catching up (saltclusterctl members)"},
			{"The minion's key is not accepted.", "saltclusterctl keys list", "accept it"},
		}},
		{"Unable to connect to the salt master publisher", "salt, on the master", []Cause{
			{"The local salt-master is not running.", "saltclusterctl doctor", "systemctl start salt-master"},
			{"The salt-master was moved to loopback, and the command line reads another configuration.",
				"salt-run config.get interface", "put the drop-in zz-saltclusterd.conf into the master.d that both read"},
		}},
		{"Message signature failed to validate", "minions", []Cause{
			{"sign_pub_messages is on, and the minion's minion_master.pub is not the cluster's master.pub.", "saltclusterctl doctor",
				"see Invalid master key"},
		}},
		{"A message with an invalid serial was received", "minions", []Cause{
			{"The cluster's AES key has just changed, because a key was deleted or by rotate. A 3006 minion that signs in while several jobs wait opens the newest first and drops the others.", "saltclusterctl status", "nothing: saltclusterd sends the minion the others again six seconds later"},
			{"A node's clock was ahead, and its jobs have serials of the future.", "saltclusterctl status",
				"synchronise the clock of the node that it names; minions accept jobs again within a minute"},
		}},
		{"Duplicate return from minion", "saltclusterd, in the words of a salt-master", []Cause{
			{"Two hosts have the same id and key: a virtual machine was cloned with its /etc/salt. Each job runs on both, and the first return is stored.", "salt MINION network.ip_addrs, a few times", "on the clone: systemctl stop salt-minion; remove /etc/salt/minion_id and /etc/salt/pki/minion; systemctl start salt-minion"},
			{"The host was restored or reinstalled elsewhere, while the old one still runs.", "saltclusterctl minions MINION",
				"stop the old one"},
		}},
		{"DNS lookup or connection check of", "minions", []Cause{
			{"The name of the minion's master does not resolve.", "getent hosts NAME, on the minion",
				"correct DNS, or put the load balancer's address into the minion's configuration"},
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
