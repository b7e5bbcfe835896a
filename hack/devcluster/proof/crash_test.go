//go:build proof

package proof

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKilledStart kills `up` at many moments, starts again each time, and at the end finds nothing left.
func TestKilledStart(t *testing.T) {
	b := newBench(t, "proof-killed")
	for _, delay := range []time.Duration{20, 100, 300, 600, 1500, 3000, 4500} {
		b.killDuringUp(delay * time.Millisecond)
	}
	b.devcluster("up")
	b.killDuringUp(time.Second) // a no-op may be killed too
	if out := b.devcluster("up"); !strings.Contains(out, "is up already") {
		t.Fatalf("up after all:\n%s", out)
	}
	b.proveMended()
	b.killEverything()
	b.expect(1, "all its processes have ended", "up")
	b.destroy()
}

func (b *bench) killDuringUp(delay time.Duration) {
	up := b.command("up")
	if err := up.Start(); err != nil {
		b.Fatal(err)
	}
	time.Sleep(delay)
	_ = up.Process.Signal(syscall.SIGKILL)
	_ = up.Wait()
	b.Logf("      up was killed after %s", delay)
}

// proveMended kills single processes: up starts those, and a pod on the node goes on.
func (b *bench) proveMended() {
	for _, name := range []string{"kube-scheduler", "kube-apiserver", "etcd", "containerd-n1", "kubelet-n2", "coredns"} {
		b.killComponent(name)
		if out := b.devcluster("up"); !strings.Contains(out, "mending") {
			b.Fatalf("up after the end of %s:\n%s", name, out)
		}
		b.devcluster("status")
	}
}

// readJSON reads a file of the cluster's directory.
func (b *bench) readJSON(file string) map[string]any {
	b.Helper()
	body, err := os.ReadFile(filepath.Join(b.cache, "clusters", b.name, file))
	if err != nil {
		b.Fatal(err)
	}
	content := map[string]any{}
	if err := json.Unmarshal(body, &content); err != nil {
		b.Fatal(err)
	}
	return content
}

func (b *bench) killComponent(name string) {
	pid := int(b.readJSON("run/" + name + ".json")["pid"].(float64))
	_ = syscall.Kill(pid, syscall.SIGKILL)
	b.eventually("gone", 5*time.Second, func() string {
		if syscall.Kill(pid, 0) != nil {
			return "gone"
		}
		return "there"
	})
}

// killEverything is what the end of a login session or of a CI job may do.
func (b *bench) killEverything() {
	script := "grep -lzs 'ALINEOD_DEVCLUSTER=" + filepath.Join(b.cache, "clusters", b.name) + "$' /proc/[0-9]*/environ | cut -d/ -f3 | xargs kill -9"
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	time.Sleep(2 * time.Second)
}

// destroy looks afterwards for anything that the cluster could have left on the machine.
func (b *bench) destroy() {
	directory := filepath.Join(b.cache, "clusters", b.name)
	device := fmt.Sprintf("'alineo%.0f[@: n]'", b.readJSON("cluster.json")["index"])
	b.devcluster("destroy")
	if _, err := os.Stat(directory); err == nil {
		b.Errorf("%s is still there", directory)
	}
	looks := []struct{ what, script string }{
		{"processes", "grep -lzs 'ALINEOD_DEVCLUSTER=" + directory + "$' /proc/[0-9]*/environ"},
		{"mounts", "grep -F '" + directory + "/' /proc/self/mountinfo"},
		{"namespaces", "ls /run/netns | grep '^" + b.name + "-'"},
		{"cgroups", "ls -d /sys/fs/cgroup/*/" + b.name + "-* /sys/fs/cgroup/" + b.name + "-*"},
		{"devices", "ip -br link | grep " + device},
		{"firewall rules", "iptables-save | grep " + device},
		{"container links", "find /var/log/containers -lname '" + directory + "/*' | grep ."},
	}
	for _, look := range looks {
		if out, err := exec.Command("sh", "-c", look.script).Output(); err == nil && len(out) > 0 {
			b.Errorf("%s left:\n%s", look.what, out)
		}
	}
}

// TestTwoClusters runs two clusters at once and sees that each has its own.
func TestTwoClusters(t *testing.T) {
	one, two := newBench(t, "proof-one"), newBench(t, "proof-two")
	done := make(chan string, 2)
	for _, b := range []*bench{one, two} {
		go func() {
			out, err := b.command("up").CombinedOutput()
			done <- fmt.Sprintf("%s: %v\n%s", b.name, err, out)
		}()
	}
	t.Log(<-done)
	t.Log(<-done)
	one.kubectl("create", "namespace", "only-in-one")
	if out, err := two.tryKubectl("get", "namespace", "only-in-one"); err == nil {
		t.Fatalf("the second cluster shows what was made in the first: %s", out)
	}
	one.destroy()
	two.devcluster("status")
}
