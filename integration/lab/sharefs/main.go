// Sharefs serves a directory as a file system (FUSE): a lab's host has its share through one, as a client of a network
// file system has. Stopped (SIGSTOP) it hangs as a mount does whose server is gone, but on this host alone; continued
// it answers again.
//
// The lab has mounted it already, and passes the connection to the kernel as standard input.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// remembered is how long the kernel goes by attributes and names it has asked for, as clients of a network file system
// do.
const remembered = time.Second

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sharefs DIRECTORY <connection to the kernel")
		os.Exit(2)
	}
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "sharefs:", err)
		os.Exit(1)
	}
}

// serve ends when the file system is unmounted.
func serve(dir string) error {
	root, err := fs.NewLoopbackRoot(dir)
	if err != nil {
		return fmt.Errorf("open the share: %w", err)
	}
	kernel, err := unix.FcntlInt(os.Stdin.Fd(), unix.F_DUPFD_CLOEXEC, 3) // the package takes standard input for no mount
	if err != nil {
		return fmt.Errorf("serve the share: %w", err)
	}
	keep := remembered
	server, err := fs.Mount(fmt.Sprintf("/dev/fd/%d", kernel), root, &fs.Options{
		AttrTimeout: &keep, EntryTimeout: &keep,
		// Locks are those of the directory: hosts must see each other's.
		MountOptions: fuse.MountOptions{EnableLocks: true, MaxBackground: 64},
	})
	if err != nil {
		return fmt.Errorf("serve the share: %w", err)
	}
	if err := os.Stdin.Close(); err != nil { // or it would outlive the server
		return fmt.Errorf("serve the share: %w", err)
	}
	fmt.Println("serving", dir)
	server.Wait()
	return nil
}
