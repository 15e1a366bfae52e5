package fanout

import (
	"fmt"

	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/saltwire"
)

// Signer signs publications with the cluster identity (saltcrypt.MasterKey).
type Signer interface {
	Sign(algorithm string, data []byte) ([]byte, error)
}

// Epochs tells under which keys publications are sealed (epochs.Manager).
type Epochs interface {
	Sealing() (cur, prev *epochs.Material)
}

// sealer turns a plaintext publication into what minions expect on 4505 (salt/channel/server.py wrap_payload): stamped
// with a serial, encrypted under the epoch, signed when algorithm names one.
type sealer struct {
	epochs    Epochs
	signer    Signer
	algorithm func() string // Config.Algorithm
	clock     *hlc.Clock
}

// sealStamped returns the payload under the current epoch and, inside a window, under the one before (else nil).
func (s *sealer) sealStamped(plain []byte) (cur, prev []byte, err error) {
	stamped, err := saltwire.SetSerial(make([]byte, 0, len(plain)+24), plain, uint64(s.clock.Now()))
	if err != nil {
		return nil, nil, fmt.Errorf("stamp serial: %w", err)
	}
	now, before := s.epochs.Sealing()
	if now == nil {
		return nil, nil, errNoEpoch
	}
	if cur, err = s.sealUnder(now, stamped); err != nil || before == nil {
		return cur, nil, err
	}
	prev, err = s.sealUnder(before, stamped)
	return cur, prev, err
}

// sealPlain returns the payload under the current epoch, with no serial.
func (s *sealer) sealPlain(payload []byte) ([]byte, error) {
	now, _ := s.epochs.Sealing()
	if now == nil {
		return nil, errNoEpoch
	}
	return s.sealUnder(now, payload)
}

func (s *sealer) sealUnder(m *epochs.Material, stamped []byte) ([]byte, error) {
	load := m.Crypticle.Seal(make([]byte, 0, len(stamped)+96), stamped, nil)
	algorithm := s.algorithm()
	if algorithm == "" {
		return saltwire.AppendPub(nil, load, nil, ""), nil
	}
	sig, err := s.signer.Sign(algorithm, load)
	if err != nil {
		return nil, fmt.Errorf("sign publication: %w", err)
	}
	return saltwire.AppendPub(nil, load, sig, algorithm), nil
}
