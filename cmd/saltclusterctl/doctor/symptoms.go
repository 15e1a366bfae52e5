package doctor

import "strings"

// Symptom is what Salt prints, and its causes when the masters are a cluster.
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
			{"All minions are affected: saltclusterd on this host has stopped. The salt-master publishes to saltclusterd only, so its jobs reach no minion; the minions are connected to the other nodes. When saltclusterd starts again, it publishes the jobs of the last 15 seconds (docs/explanation/guarantees.md, Jobs given while saltclusterd is down).", "systemctl status saltclusterd", "systemctl start saltclusterd, then repeat the command; or use another node"},
			{"The minion needs longer than the command waits.", "saltclusterctl jobs show JID",
				"wait, or use salt --timeout 60; every master will have the return in its job cache"},
			{"A load balancer or firewall cut the minion's connection to 4505, and the minion has not noticed.",
				"saltclusterctl doctor --haproxy /etc/haproxy/haproxy.cfg", "correct the timeouts and the on-marked-down setting that it names"},
			{"The minion is moving to another node because its node was drained or stopped. Salt 3006 needs 1 to 22 seconds for this, then runs the job.", "saltclusterctl jobs show JID", "wait; the return will be in the job cache"},
			{"Salt 3008: the minion's connection to 4505 ended while it signed in because of a job under a new AES key. A bug in Salt, also with a stock master, then leaves it without a subscription. Its log ends with `InvalidStateError` in `AsyncAuth._authenticate` (3008.3).",
				"saltclusterctl minions show MINION", "if it is connected but does not respond, on the minion: systemctl restart salt-minion. To avoid it, set zmq_monitor: False in its configuration"},
			{"Salt 3007 with `transport: tcp`: the minion's connection to 4505 ended, and it connected again in the wrong moment. It then uses a whole processor and does nothing else (a bug in Salt, also with a stock master; 3007.15).",
				"top", "on the minion: systemctl restart salt-minion. To avoid it: transport: zeromq, or a minion of 3006 or 3008"},
			{"Small jobs work and large ones do not: the network drops full-size packets.", "saltclusterctl doctor",
				"correct the MTU as it says under probe"},
		}},
		{"Minion did not return. [Not connected]", "salt, on the master", []Cause{
			{"All minions are affected: saltclusterd on this host has stopped; see [No response].", "systemctl status saltclusterd",
				"systemctl start saltclusterd, then repeat the command; or use another node"},
			{"The minion is not running or cannot reach its master's address.", "saltclusterctl minions show MINION",
				"on the minion: systemctl status salt-minion; nc -vz MASTER 4505; nc -vz MASTER 4506"},
			{"The minion is busy. Salt judges by the addresses that this host's kernel sees, and these are the load balancer's.", "saltclusterctl minions list --state present MINION", "if it is present, see [No response]"},
		}},
		{"Salt request timed out", "salt, salt-call and minions", []Cause{
			{"The salt-master of this host is down or hangs. Commands on this host need it.", "saltclusterctl status",
				"systemctl restart salt-master; meanwhile the masters of the other nodes serve the minions"},
			{"HAProxy sends requests to a node that is down, or closes connections before the master has answered.",
				"saltclusterctl doctor --haproxy /etc/haproxy/haproxy.cfg", "add check to every server line, and set the timeouts longer than forward_timeout"},
			{"No node has a working salt-master.", "saltclusterctl members", "start a salt-master on one of the nodes"},
			{"A minion's clock is wrong and the master has request_server_ttl set, so it drops the request.",
				"grep 'expired ttl' /var/log/salt/master", "synchronise the minion's clock"},
		}},
		{"The minion failed to return the job information", "minions", []Cause{
			{"Salt 3007 says so after each job, also with a stock master, though the master has the return.", "saltclusterctl jobs show JID", "if it has the return, ignore the message; if not, see Salt request timed out"},
		}},
		{"Attempt to authenticate with the salt master failed with timeout error", "minions", []Cause{
			{"Nothing answers on 4506 at the minion's master address.", "saltclusterctl doctor --via ADDRESS",
				"follow what it says under probe"},
			{"Very many minions sign in at once, and each has to wait its turn.", "saltclusterctl status",
				"nothing: they try again. To give sign-ins more CPU time, raise signin_cpu_percent"},
			{"The cluster has no majority, and the minion's key is new or has changed.", "saltclusterctl status",
				"start the nodes it names"},
		}},
		{"Invalid master key", "minions", []Cause{
			{"The minion expects the key of another master, set by master_finger or stored in its minion_master.pub.",
				"saltclusterctl doctor", "run saltclusterctl bootstrap on the master whose key the minions have: its master.pem becomes the cluster's identity"},
			{"A salt-master was not restarted after its node joined, and still presents its old key to minions that connect to it directly.",
				"saltclusterctl status", "systemctl restart salt-master on that node"},
			{"The load balancer sends minions to a master that is not a member.",
				"saltclusterctl doctor --haproxy /etc/haproxy/haproxy.cfg", "remove that server from HAProxy, or join that master to the cluster"},
		}},
		{"The master key has changed, the salt master could have been subverted, verify salt master's public key", "minions",
			[]Cause{
				{"As for Invalid master key: the key that the minion stored at its first contact differs from the current one.", "salt-key -f master.pub; on the minion: salt-call --local key.finger_master", "if you know why they differ: remove /etc/salt/pki/minion/minion_master.pub on the minion, then systemctl restart salt-minion there"},
				{"The cluster was created again with bootstrap instead of being restored from a snapshot.", "saltclusterctl status",
					"to bring the identity back, run saltclusterctl snapshot restore on an empty node"},
			}},
		{"The Salt Master has rejected this minion's public key", "minions", []Cause{
			{"The key was rejected, or another key is accepted for this id (denied).",
				"saltclusterctl keys show MINION", "compare it with salt-call --local key.finger on the minion; then saltclusterctl keys delete MINION, and accept the new key"},
			{"The minion was reinstalled and has a new key.", "saltclusterctl keys show MINION", "as above"},
		}},
		{"The Salt Master has cached the public key for this node", "minions", []Cause{
			{"The key is pending.", "saltclusterctl keys list pending",
				"salt-key -a MINION on any master, or saltclusterctl keys accept MINION"},
			{"The key was accepted, but the cluster has no majority, so decisions about keys have to wait.", "saltclusterctl status",
				"start the nodes it names"},
			{"Salt 3008: the key was accepted with salt-key while the minion was signing in. salt-key removes the pending key before it writes the accepted one, so the salt-master treats the minion as new (seen with 3008.3, in 2 of 150 cases with a minion that signed in all the time).", "saltclusterctl keys list pending", "accept it again"},
		}},
		{"Failed to authenticate! This is most likely because this user is not permitted to execute commands",
			"salt, on the master", []Cause{
				{"cachedir is shared between masters. Each master writes .root_key there when it starts, and so replaces that of the others.",
					"ls -l /var/cache/salt/master/.root_key", "keep cachedir on each master's own disk and share only jobs (docs/how-to/shared-filesystem.md)"},
				{"The command runs as a different user than the master, and publisher_acl does not list that user.",
					"id; grep -r publisher_acl /etc/salt", "use sudo, or add the user to publisher_acl"},
			}},
		{"Authentication failure of type \"token\" occurred", "salt -T, salt-api", []Cause{
			{"By this master's clock, the token has expired.", "saltclusterctl doctor",
				"synchronise the masters' clocks"},
			{"The token was just created on another master, and that node cannot be reached.", "saltclusterctl verify",
				"start the nodes it names"},
		}},
		{"No minions matched the target", "salt, on the master", []Cause{
			{"The target uses grains or pillar data that this master does not have yet.", "saltclusterctl verify",
				"run salt MINION saltutil.refresh_grains; or wait, if the node is still catching up (saltclusterctl members)"},
			{"The minion's key is not accepted.", "saltclusterctl keys list", "saltclusterctl keys accept MINION"},
		}},
		{"Unable to connect to the salt master publisher", "salt, on the master", []Cause{
			{"The salt-master of this host is not running.", "saltclusterctl doctor", "systemctl start salt-master"},
			{"The salt-master was moved to loopback, and the command reads a different configuration.",
				"salt-run config.get interface", "put the drop-in zz-saltclusterd.conf into a master.d that both read"},
		}},
		{"Message signature failed to validate", "minions", []Cause{
			{"sign_pub_messages is on, and the minion's minion_master.pub is not the cluster's master.pub.", "saltclusterctl doctor",
				"see Invalid master key"},
		}},
		{"A message with an invalid serial was received", "minions", []Cause{
			{"The cluster's AES key has just changed, because a minion key was deleted or rotate was run. A 3006 minion that signs in while several jobs wait opens the newest first and drops the others.", "saltclusterctl status", "nothing: saltclusterd sends the other jobs to the minion again six seconds later"},
			{"A node's clock was ahead, so its jobs have serials from the future.", "saltclusterctl status",
				"synchronise the clock of the node that it names; minions accept jobs again within a minute"},
		}},
		{"Duplicate return from minion", "saltclusterd, in the salt-master's wording", []Cause{
			{"Two hosts have the same id and key, for example because a virtual machine was cloned with its /etc/salt. Each job runs on both, and only the first return is stored. Run the check several times: it shows the addresses of both.", "salt MINION network.ip_addrs", "on the clone: systemctl stop salt-minion; remove /etc/salt/minion_id and /etc/salt/pki/minion; systemctl start salt-minion"},
			{"The host was restored or reinstalled elsewhere while the old one still runs.", "saltclusterctl minions show MINION",
				"stop salt-minion on the old host"},
		}},
		{"DNS lookup or connection check of", "minions", []Cause{
			{"The minion cannot resolve the name of its master. Run the check on the minion.", "getent hosts NAME",
				"correct DNS, or set master in the minion's configuration to the load balancer's address"},
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
