package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// startWithoutVDSO starts a program that has to ask the kernel for the time: the pointer to the code with which
// programs read the clock by themselves is struck out before its first instruction. Children that it forks inherit
// that.
func startWithoutVDSO(argv, env []string, files []uintptr) (pid int, err error) {
	pid, err = syscall.ForkExec(argv[0], argv,
		&syscall.ProcAttr{Env: env, Files: files, Sys: &syscall.SysProcAttr{Ptrace: true}})
	if err != nil {
		return 0, err
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil || !ws.Stopped() {
		return 0, fmt.Errorf("wait for the new program: %w", errors.Join(err, errors.New(strconv.Itoa(int(ws)))))
	}
	err = strikeVDSO(pid)
	return pid, errors.Join(err, syscall.PtraceDetach(pid))
}

func strikeVDSO(pid int) error {
	const atSysinfoEHDR, atIgnore, statStack = 33, 1, 25 // the 28th field of stat, counted from behind the command's name
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) <= statStack {
		return errors.New("stat is too short")
	}
	at, err := strconv.ParseInt(fields[statStack], 10, 64)
	if err != nil {
		return err
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	word := make([]byte, 8)
	next := func() (uint64, error) {
		_, err := mem.ReadAt(word, at)
		at += 8
		return binary.NativeEndian.Uint64(word), err
	}
	for nulls := 0; nulls < 2; { // the stack: argc, argv, NULL, environment, NULL, auxiliary vector
		v, err := next()
		if err != nil {
			return fmt.Errorf("read stack: %w", err)
		}
		if v == 0 {
			nulls++
		}
	}
	for {
		kind, err1 := next()
		_, err2 := next()
		if err := errors.Join(err1, err2); err != nil || kind == 0 {
			return err
		}
		if kind == atSysinfoEHDR {
			_, err := mem.WriteAt(binary.NativeEndian.AppendUint64(nil, atIgnore), at-16)
			return err
		}
	}
}
