package signal

import (
	"testing"

	"saltclusterd/integration/check"
)

func TestSend(t *testing.T) {
	c := make(chan struct{}, 1)
	Send(c)
	Send(c) // which does not block
	<-c
	check.Equal(t, len(c), 0, "two signals were kept")
	Send(c)
	check.Equal(t, len(c), 1, "a signal after the first was taken is lost")
}
