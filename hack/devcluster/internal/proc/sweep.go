package proc

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// FindMarked returns every process that carries the cluster's mark and for which keep answers true.
// Records are not consulted: this finds what a start that was killed half-way left without one.
func FindMarked(mark string, keep func(argv []string) bool) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err == nil && pid != os.Getpid() && marked(pid, mark) && keep(commandLine(pid)) && !zombie(pid) {
			found = append(found, pid)
		}
	}
	return found
}

// Everything is the filter of FindMarked that keeps all.
func Everything([]string) bool { return true }

// KillMarked kills every process that carries the mark and passes the filter, until none is left.
func KillMarked(mark string, keep func(argv []string) bool) error {
	find := func() []int { return FindMarked(mark, keep) }
	confirm := func(pid int) bool { return marked(pid, mark) }
	return KillAll(find, confirm, 10*time.Second)
}

// KillAll kills what find returns until it returns nothing; confirm is asked again with a handle on the
// process in hand, so that a number that has passed to another process is never signalled.
func KillAll(find func() []int, confirm func(pid int) bool, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		pids := find()
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not end; look at them with `ps -fp`", pids)
		}
		for _, pid := range pids {
			killOne(pid, confirm)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func killOne(pid int, confirm func(pid int) bool) {
	handle, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	defer func() { _ = handle.Release() }()
	if confirm(pid) {
		_ = handle.Signal(syscall.SIGKILL)
	}
}

func zombie(pid int) bool {
	_, state := startTicks(pid)
	return state == 'Z' || state == 0
}
