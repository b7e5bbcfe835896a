package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	line := "42 (a (b) c) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 1"
	if ticks, state := parseStat([]byte(line)); ticks != 987654 || state != 'S' {
		t.Errorf("got %d %c", ticks, state)
	}
	if ticks, _ := parseStat([]byte("nonsense")); ticks != 0 {
		t.Errorf("got %d", ticks)
	}
}

func startSleeper(t *testing.T, dir string) Record {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	record, err := Start(dir, Spec{Name: "sleeper", Argv: []string{sleep, "60"}, Log: filepath.Join(dir, "log"), Mark: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = record.Signal(syscall.SIGKILL) })
	return record
}

func TestARecordKnowsItsProcess(t *testing.T) {
	dir := t.TempDir()
	record := startSleeper(t, dir)
	read, found := ReadRecord(dir, "sleeper")
	if !found || !read.Running() || !read.Recognised() || read.PID != record.PID {
		t.Fatalf("read %+v, %v", read, found)
	}
	if err := read.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); read.Running(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it still runs")
		}
	}
}

// A number may have passed to another process: each thing that differs must save that one.
func TestAnotherProcessIsNeverSignalled(t *testing.T) {
	record := startSleeper(t, t.TempDir())
	for what, change := range map[string]func(r *Record){
		"an earlier process of the number": func(r *Record) { r.Start-- },
		"an earlier boot":                  func(r *Record) { r.Boot = "another" },
		"another command line":             func(r *Record) { r.Argv = []string{"sleep", "61"} },
		"another cluster":                  func(r *Record) { r.Mark = "/elsewhere" },
	} {
		stale := record
		change(&stale)
		if err := stale.Signal(syscall.SIGKILL); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
		if !record.Running() {
			t.Fatalf("%s: the process was killed", what)
		}
	}
}

func TestFindMarkedFindsWhatNoRecordNames(t *testing.T) {
	dir := t.TempDir()
	record := startSleeper(t, dir)
	if err := os.Remove(filepath.Join(dir, "sleeper.json")); err != nil {
		t.Fatal(err)
	}
	if err := KillMarked(dir+"/other", Everything); err != nil || !record.Running() {
		t.Fatalf("another mark killed it: %v", err)
	}
	if err := KillMarked(dir, Everything); err != nil || record.Running() {
		t.Fatalf("it still runs: %v", err)
	}
}
