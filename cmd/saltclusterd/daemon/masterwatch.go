package daemon

// masterBack notes that the local master publishes again: it may have been started.
func (s *service) masterBack() {
	s.masterUp()
	s.missed.NotifyConnected()
	s.watch.NotifyStarted()
}
