package daemon

// Pulse returns when this process has had every lock that serving minions takes. One that never returns from it does
// not serve any more, whatever else it does. It waits for no disk, no network and no other process.
func (d *Daemon) Pulse() {
	m := d.current()
	if m == nil {
		return
	}
	m.Consensus.View()
	m.Routes()
	if m.ready() {
		m.svc.pub.Stats()
		m.svc.reqs.Stats()
		m.svc.drain.Draining()
	}
}
