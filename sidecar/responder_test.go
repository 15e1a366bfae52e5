package sidecar

// fakeResponder is a Responder of functions; those that are nil do nothing.
type fakeResponder struct {
	reply  func([]byte)
	lend   func(body []byte, back func([]byte)) // nil: reply
	drop   func()
	pass   func(down bool)
	gone   func() bool
	known  func(minion string)
	linger func() bool // nil: there is room
}

func (r *fakeResponder) Reply(body []byte) { r.reply(body) }

func (r *fakeResponder) ReplyLent(body []byte, back func([]byte)) {
	if r.lend == nil {
		r.reply(body)
		return
	}
	r.lend(body, back)
}

func (r *fakeResponder) Drop() { r.drop() }

func (r *fakeResponder) PassBack(down bool) {
	if r.pass == nil {
		r.drop()
		return
	}
	r.pass(down)
}

func (r *fakeResponder) Gone() bool { return r.gone != nil && r.gone() }

func (r *fakeResponder) Refused() {}

func (r *fakeResponder) Authenticated(minion string) {
	if r.known != nil {
		r.known(minion)
	}
}

func (r *fakeResponder) Linger() bool { return r.linger == nil || r.linger() }

// respondTo is a Responder that sends the reply, nil for none, to a channel.
func respondTo(got chan<- []byte) *fakeResponder {
	return &fakeResponder{reply: func(b []byte) { got <- b }, drop: func() { got <- nil }}
}

// endingResponder closes a channel when the request has ended.
type endingResponder struct {
	Responder
	ended chan struct{}
}

func (r endingResponder) Reply(body []byte) { r.Responder.Reply(body); close(r.ended) }

func (r endingResponder) ReplyLent(body []byte, _ func([]byte)) { r.Reply(body) }

func (r endingResponder) Drop() { r.Responder.Drop(); close(r.ended) }
