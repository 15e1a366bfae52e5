package signal

import "testing"

func TestSend(t *testing.T) {
	c := make(chan struct{}, 1)
	Send(c)
	Send(c) // which does not block
	<-c
	if len(c) != 0 {
		t.Error("two signals were kept")
	}
	Send(c)
	if len(c) != 1 {
		t.Error("a signal after the first was taken is lost")
	}
}
