package herd

import (
	"fmt"
	"time"
)

// Profile is how stock minions of a version behave, with their defaults.
type Profile struct {
	Version string

	// Monitor: a broken 4505 is noticed, and the minion starts over (zmq_monitor).
	Monitor bool
	// Resources: it registers its resources when it starts.
	Resources bool

	AuthTimeout    time.Duration // auth_timeout
	AuthTries      int           // auth_tries
	AcceptanceWait time.Duration // acceptance_wait_time
	// random_reauth_delay, or what the process waits else before it starts over; a random part of it
	ReauthDelay time.Duration

	ReconDefault, ReconMax time.Duration // recon_default, recon_max (recon_randomize is on)

	ReturnTimer, ReturnTimerMax time.Duration // return_retry_timer, return_retry_timer_max
	ReturnTries                 int           // return_retry_tries
	StartTimeout                time.Duration // of the start event
}

// ProfileOf returns that of a version: 3006.28, or 3006.
func ProfileOf(version string) (Profile, error) {
	p := Profile{
		Version:     version,
		AuthTimeout: 5 * time.Second, AuthTries: 7, AcceptanceWait: 10 * time.Second, ReauthDelay: 10 * time.Second,
		ReconDefault: time.Second, ReconMax: 10 * time.Second,
		ReturnTimer: 5 * time.Second, ReturnTimerMax: 10 * time.Second, ReturnTries: 3, StartTimeout: time.Minute,
	}
	major, err := majorOf(version)
	if err != nil {
		return p, err
	}
	p.Monitor, p.Resources = major >= 3007, major >= 3008
	return p, nil
}

func majorOf(version string) (major int, err error) {
	if _, err := fmt.Sscanf(version, "%4d", &major); err != nil || major < 3006 || major > 3008 {
		return 0, fmt.Errorf("no minions of Salt %q are played: only those of 3006, 3007 and 3008", version)
	}
	return major, nil
}
