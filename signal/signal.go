package signal

// Send wakes the receiver of c now, or as soon as it receives again: c holds one value, and one that is there already
// is enough.
func Send(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
