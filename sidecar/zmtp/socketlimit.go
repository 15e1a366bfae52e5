package zmtp

// MaxSend is the most that Send is to be given at a time: the kernel may carry a packet to its receiver, on the same
// host, before it returns.
const MaxSend = 64 << 10
