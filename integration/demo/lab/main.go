// Command lab (bin/lab) runs commands on the hosts of the running demo and breaks things there:
// lab m1 salt '*' test.ping; lab kill m2/master; lab help.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"saltclusterd/integration/lab"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	conn, err := net.Dial("unix", lab.ControlSocket())
	if err != nil {
		return errors.New("no demo is running; start one with 'make demo' and leave it running")
	}
	defer conn.Close()
	if len(args) > 0 && slices.Contains([]string{"help", "-h", "--help"}, args[0]) {
		args = nil
	}
	if err := json.NewEncoder(conn).Encode(map[string]any{"args": args}); err != nil {
		return err
	}
	var r struct {
		Place *lab.Place
		Text  string
		Error string
	}
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		return fmt.Errorf("ask the demo: %w", err)
	}
	switch {
	case r.Error != "":
		return errors.New(r.Error)
	case r.Place != nil:
		return enter(r.Place, args[1:])
	}
	fmt.Println(r.Text)
	return nil
}

// enter becomes the command, in the namespaces of the place.
func enter(p *lab.Place, argv []string) error {
	if len(argv) == 0 {
		argv = []string{"bash", "--norc"}
	}
	env := append(slices.DeleteFunc(p.Env, func(kv string) bool { return strings.HasPrefix(kv, "TERM=") }),
		"TERM="+os.Getenv("TERM"))
	// The place's PATH decides where the command is found.
	for _, kv := range env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			os.Setenv("PATH", path)
		}
	}
	if p.PID != 0 {
		argv = append([]string{"nsenter", "-t", strconv.Itoa(p.PID), "-n", "-u", "-m", "--"}, argv...)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return syscall.Exec(path, argv, env)
}
