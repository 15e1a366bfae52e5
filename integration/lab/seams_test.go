package lab_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// watchEnv makes this binary a program, linked as our daemons are, that prints what it sees of clock and disk, line by
// line.
const watchEnv = "LAB_TEST_WATCH"

func init() {
	path := os.Getenv(watchEnv)
	if path == "" {
		return
	}
	for {
		f, err := os.Create(path)
		if err != nil {
			os.Exit(1)
		}
		start := time.Now()
		err = f.Sync()
		var errno syscall.Errno
		errors.As(err, &errno)
		fmt.Println(time.Now().Unix(), time.Since(start).Milliseconds(), int(errno))
		f.Close()
		time.Sleep(10 * time.Millisecond)
	}
}

// sight is one line of the program.
type sight struct{ unix, syncMillis, errno int64 }

func lastSight(p *lab.Process) (s sight, err error) {
	raw, err := os.ReadFile(p.LogPath())
	if err != nil {
		return s, err
	}
	lines := strings.Split(strings.TrimRight(string(raw[:strings.LastIndexByte(string(raw), '\n')+1]), "\n"), "\n")
	f := strings.Fields(lines[len(lines)-1])
	if len(f) != 3 {
		return s, errors.New("nothing seen yet")
	}
	for i, to := range []*int64{&s.unix, &s.syncMillis, &s.errno} {
		if *to, err = strconv.ParseInt(f[i], 10, 64); err != nil {
			return s, err
		}
	}
	return s, nil
}

func TestSeams(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	l := newLab(t, true)
	self, err := os.Executable()
	labtest.Must(t, err)
	p := host(t, l, "m1").NewProcess(lab.Spec{Name: "watch", Argv: []string{self},
		Env: []string{watchEnv + "=" + l.Dir() + "/f"}})
	if err := p.SetSeams(lab.Seams{Clock: 1}); !errors.Is(err, lab.ErrNoSeams) {
		t.Errorf("without seams: %v", err)
	}
	labtest.Must(t, p.GiveSeams(lab.SeamSync|lab.SeamClock))
	labtest.Must(t, p.Start(t.Context()))
	hour := int64(3600)
	near := func(a, b int64) bool { return a-b < 60 && b-a < 60 }
	for _, c := range []struct {
		name  string
		seams lab.Seams
		ok    func(sight) bool
	}{
		{"truth", lab.Seams{}, func(s sight) bool { return near(s.unix, time.Now().Unix()) && s.errno == 0 }},
		{"clock", lab.Seams{Clock: time.Hour}, func(s sight) bool { return near(s.unix, time.Now().Unix()+hour) }},
		{"slow sync", lab.Seams{Sync: 700 * time.Millisecond}, func(s sight) bool {
			return near(s.unix, time.Now().Unix()) && s.syncMillis >= 700 && s.errno == 0
		}},
		{"failing sync", lab.Seams{SyncErr: syscall.EIO}, func(s sight) bool { return s.errno == int64(syscall.EIO) }},
		{"truth again", lab.Seams{}, func(s sight) bool { return near(s.unix, time.Now().Unix()) && s.errno == 0 }},
	} {
		labtest.Must(t, p.SetSeams(c.seams))
		deadline := time.Now().Add(20 * time.Second)
		for {
			s, err := lastSight(p)
			if err == nil && c.ok(s) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: last seen %+v, %v\n%s", c.name, s, err, p.Tail(5))
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// A program that is linked dynamically and started by the first line of a script, as salt-master is, is lied to, and so
// are the processes it forks.
func TestSeamsOfScripts(t *testing.T) {
	const python = "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and " + python)
	}
	l := newLab(t, true)
	script := filepath.Join(l.Dir(), "script")
	labtest.Must(t, os.WriteFile(script,
		[]byte("#!"+python+"\nimport os, time\nos.fork()\nprint(int(time.time()), flush=True)\n"), 0o755))
	p := host(t, l, "m1").NewProcess(lab.Spec{Name: "script", Argv: []string{script}})
	labtest.Must(t, p.GiveSeams(lab.SeamClock))
	labtest.Must(t, p.SetSeams(lab.Seams{Clock: time.Hour}))
	labtest.Must(t, p.Start(t.Context()))
	<-p.Done()
	raw, err := os.ReadFile(p.LogPath())
	labtest.Must(t, err)
	lines := strings.Fields(string(raw))
	if len(lines) == 0 {
		t.Error("nothing printed")
	}
	for _, line := range lines {
		if at, err := strconv.ParseInt(line, 10, 64); err != nil || at < time.Now().Unix()+3000 {
			t.Errorf("it is %d there: %s", at, raw)
		}
	}
}
