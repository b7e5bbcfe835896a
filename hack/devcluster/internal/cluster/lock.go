package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// LockKind says who else may hold a lock.
type LockKind int

const (
	// Shared goes with other shared holders: loading images.
	Shared LockKind = syscall.LOCK_SH
	// Exclusive goes with nobody: whatever starts or stops things.
	Exclusive LockKind = syscall.LOCK_EX
)

// Lock takes a lock by name in the cache, says whom it waits for, and returns the function that gives it back.
// The kernel gives it back too when the holder dies.
func Lock(cache, name string, kind LockKind, out *Progress) (func(), error) {
	path := filepath.Join(cache, "locks", name+".lock")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := take(file, kind, out); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if kind == Exclusive {
		_ = file.Truncate(0)
		_, _ = file.WriteAt(fmt.Appendf(nil, "%d (devcluster %s)", os.Getpid(), strings.Join(os.Args[1:], " ")), 0)
	}
	return func() {
		_ = file.Truncate(0)
		file.Close()
	}, nil
}

func take(file *os.File, kind LockKind, out *Progress) error {
	err := syscall.Flock(int(file.Fd()), int(kind)|syscall.LOCK_NB)
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return err
	}
	holder, _ := os.ReadFile(file.Name())
	out.Say("waiting for another devcluster to finish%s", describeHolder(string(holder)))
	for {
		err := syscall.Flock(int(file.Fd()), int(kind))
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// describeHolder names the process that wrote itself into the lock, unless it died since.
func describeHolder(text string) string {
	pid, _, found := strings.Cut(text, " ")
	if _, err := os.Stat("/proc/" + pid); !found || err != nil {
		return ""
	}
	return ": process " + text
}
