// Package proc starts, recognises and ends the processes of a cluster. A process is recognised by three
// things together: its number and start time in this boot of the machine, its command line, and a mark in
// its environment; nothing is signalled that does not match.
package proc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// markVariable is set in the environment of everything a cluster starts, to the cluster's directory. Children
// inherit it (containerd's shims do), so even what no record names is found.
const markVariable = "ALINEOD_DEVCLUSTER"

// searchPath is what the processes find the machine's programs by; the caller's own PATH may lack sbin.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Spec is a process to start.
type Spec struct {
	Name string
	Argv []string
	// Netns is the network namespace to start it in; empty is the host's.
	Netns string
	Log   string
	// Mark is the cluster's directory.
	Mark string
}

// Record is what is kept of a started process.
type Record struct {
	Name  string   `json:"name"`
	PID   int      `json:"pid"`
	Start uint64   `json:"startTicks"`
	Boot  string   `json:"boot"`
	Argv  []string `json:"argv"`
	Mark  string   `json:"mark"`
}

// Start starts a process in a session of its own, with a record in dir, and does not wait for it.
func Start(dir string, spec Spec) (Record, error) {
	log, err := openLog(spec.Log)
	if err != nil {
		return Record{}, err
	}
	defer log.Close()
	argv := spec.Argv
	if spec.Netns != "" {
		// nsenter and not `ip netns exec`: that one mounts a fresh /sys, which hides the cgroups.
		argv = append([]string{"nsenter", "--net=/run/netns/" + spec.Netns, "--"}, argv...)
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return Record{}, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	// A minimal environment: a proxy or a private set of authorities of the caller must not reach a cluster
	// that only ever talks to itself.
	process, err := os.StartProcess(program, argv, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{"PATH=" + searchPath, "HOME=/root", markVariable + "=" + spec.Mark},
		Files: []*os.File{nil, log, log},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return Record{}, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	// Collected while we live, so that an early death is seen as one and not as a zombie.
	go func() { _, _ = process.Wait() }()
	record := Record{Name: spec.Name, PID: process.Pid, Boot: BootID(), Argv: spec.Argv, Mark: spec.Mark}
	record.Start, _ = startTicks(process.Pid)
	return record, writeRecord(dir, record)
}

// openLog keeps one earlier log: the reason for a death is often there.
func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
}

func writeRecord(dir string, record Record) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	body, err := json.Marshal(record)
	if err != nil {
		return err
	}
	temporary := filepath.Join(dir, "."+record.Name)
	if err := os.WriteFile(temporary, body, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, record.Name+".json"))
}

// ReadRecord returns the record of a process; false when there is none that can be read.
func ReadRecord(dir, name string) (Record, bool) {
	body, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if err != nil {
		return Record{}, false
	}
	var record Record
	return record, json.Unmarshal(body, &record) == nil
}

// Running says whether the process has not ended: no other process of this boot has its number and start time.
func (r Record) Running() bool {
	if r.PID <= 0 || r.Boot != BootID() {
		return false
	}
	start, state := startTicks(r.PID)
	return start != 0 && start == r.Start && state != 'Z'
}

// Recognised says whether the process also shows the mark and the command line that it was started with.
func (r Record) Recognised() bool {
	return r.Running() && marked(r.PID, r.Mark) && slices.Equal(trimEnter(commandLine(r.PID)), r.Argv)
}

// trimEnter drops the nsenter words that a process shows for the instant before it becomes its program.
func trimEnter(argv []string) []string {
	if len(argv) > 3 && argv[0] == "nsenter" {
		return argv[3:]
	}
	return argv
}

// Signal sends a signal to the process of the record if it is still that process.
func (r Record) Signal(signal os.Signal) error {
	// The handle is taken before the check: were the process to end between, its number could not mislead us.
	handle, err := os.FindProcess(r.PID)
	if err != nil {
		return nil
	}
	defer func() { _ = handle.Release() }()
	if !r.Recognised() {
		return nil
	}
	if err := handle.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s (%d): %w", r.Name, r.PID, err)
	}
	return nil
}

// BootID tells one boot of the machine from another.
func BootID() string {
	body, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(body))
}

// startTicks returns when a process began, in clock ticks since boot, and its state; zeroes when it is gone.
func startTicks(pid int) (uint64, byte) {
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	return parseStat(body)
}

// parseStat reads field 22 and field 3; the second field, the name, may itself hold spaces and brackets.
func parseStat(body []byte) (uint64, byte) {
	end := bytes.LastIndexByte(body, ')')
	if end < 0 {
		return 0, 0
	}
	fields := strings.Fields(string(body[end+1:]))
	if len(fields) < 20 {
		return 0, 0
	}
	ticks, _ := strconv.ParseUint(fields[19], 10, 64)
	return ticks, fields[0][0]
}

func commandLine(pid int) []string {
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(body) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(body), "\x00"), "\x00")
}

// marked says whether the process was started with the mark of that cluster.
func marked(pid int, mark string) bool {
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	return slices.Contains(strings.Split(string(body), "\x00"), markVariable+"="+mark)
}
