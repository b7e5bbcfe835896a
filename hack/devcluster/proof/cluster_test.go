//go:build proof

package proof

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestClusterIsReal(t *testing.T) {
	b := newBench(t, "proof-real")
	b.devcluster("up")
	b.deploy()
	b.proveNetwork()
	b.proveAccess()
	b.proveVolumes()
	b.proveCut()
	b.provePower("reboot")
	b.provePower("stop", "start")
	b.proveRestart()
}

// proveNetwork asks from each node, by short name, until both pods have answered through the Service.
func (b *bench) proveNetwork() {
	for _, from := range []string{"probe-n1", "probe-n2"} {
		for _, by := range []string{"probe-n1", "probe-n2"} {
			b.eventually(by, 20*time.Second, func() string { return b.probe(from, "get", "http://probe") })
		}
		if out := b.probe(from, "lookup", "kubernetes.default.svc.cluster.local"); !strings.HasPrefix(out, "[10.") {
			b.Fatalf("%s cannot find the API server by name: %s", from, out)
		}
		if out := b.probe(from, "get", "http://203.0.113.1"); !strings.Contains(out, "connection refused") {
			b.Fatalf("a way out of the cluster should not be there, and be refused at once: %s", out)
		}
	}
}

func (b *bench) proveAccess() {
	if out := b.kubectl("logs", "probe-n1"); !strings.Contains(out, "serving as probe-n1") {
		b.Fatalf("logs: %s", out)
	}
	address := b.field("pod/probe-n2", "{.status.podIP}")
	b.eventually("probe-n2", 5*time.Second, func() string { return fetch("http://" + address + ":8080") })
	for _, node := range []string{"n1", "n2"} {
		host := b.field("node/"+node, `{.status.addresses[?(@.type=="InternalIP")].address}`)
		b.eventually("probe-n1", 20*time.Second, func() string { return fetch("http://" + host + ":30080") })
	}
	forward := exec.Command(b.cache+"/bin/kube", "kubectl", "--kubeconfig", b.cache+"/clusters/"+b.name+"/kubeconfig", "port-forward", "pod/probe-n2", "18765:8080")
	if err := forward.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = forward.Process.Kill(); _ = forward.Wait() }()
	b.eventually("probe-n2", 10*time.Second, func() string { return fetch("http://127.0.0.1:18765") })
}

// proveVolumes writes to a claimed volume, and sees a deleted claim's volume on offer again.
func (b *bench) proveVolumes() {
	for _, node := range []string{"n1", "n2"} {
		pod := "probe-" + node
		if phase := b.field("pvc/"+pod, "{.status.phase}"); phase != "Bound" {
			b.Fatalf("claim of %s is %s", pod, phase)
		}
		b.probe(pod, "write", "/claimed/file")
		b.probe(pod, "write", "/scratch/file")
		b.checkFiles(pod)
	}
	b.kubectl("apply", "-f", "claim.yaml")
	b.eventually("Bound", 20*time.Second, func() string { return b.field("pvc/spare", "{.status.phase}") })
	volume := b.field("pvc/spare", "{.spec.volumeName}")
	b.kubectl("delete", "-f", "claim.yaml")
	b.eventually("Available", 20*time.Second, func() string { return b.field("pv/"+volume, "{.status.phase}") })
}

func (b *bench) checkFiles(pod string) {
	b.Helper()
	for _, file := range []string{"/claimed/file", "/scratch/file"} {
		if got := b.probe(pod, "read", file); got != pod {
			b.Fatalf("%s of %s holds %q", file, pod, got)
		}
	}
}

func (b *bench) proveCut() {
	b.devcluster("node", "cut", "n2")
	b.eventually("Unknown", 40*time.Second, b.nodeReady("n2"))
	b.devcluster("node", "join", "n2")
	b.eventually("True", 10*time.Second, b.nodeReady("n2"))
	b.eventually("probe-n2", 30*time.Second, func() string { return b.probe("probe-n1", "get", "http://probe") })
	b.devcluster("node", "cut", "n2")
	b.devcluster("up")
	b.waitPods()
}

// provePower loses the power of a node and finds the same pod with the same files, its container started once more.
func (b *bench) provePower(verbs ...string) {
	identity := b.field("pod/probe-n2", "{.metadata.uid}")
	restarts := b.field("pod/probe-n2", "{.status.containerStatuses[0].restartCount}")
	for _, verb := range verbs {
		b.devcluster("node", verb, "n2")
	}
	var before int
	_, _ = fmt.Sscan(restarts, &before)
	b.eventually(fmt.Sprint(before+1), 60*time.Second, func() string {
		return b.field("pod/probe-n2", "{.status.containerStatuses[0].restartCount}")
	})
	b.waitPods()
	if now := b.field("pod/probe-n2", "{.metadata.uid}"); now != identity {
		b.Fatalf("another pod took the place of %s: %s", identity, now)
	}
	b.checkFiles("probe-n2")
	b.eventually("probe-n2", 30*time.Second, func() string { return b.probe("probe-n1", "get", "http://probe") })
}

// proveRestart stops everything and finds it again.
func (b *bench) proveRestart() {
	b.devcluster("down")
	b.devcluster("up")
	b.eventually("2", 60*time.Second, func() string {
		return fmt.Sprint(strings.Count(b.field("pods", "{.items[*].status.containerStatuses[0].state.running.startedAt}"), "T"))
	})
	b.waitPods()
	for _, pod := range []string{"probe-n1", "probe-n2"} {
		b.eventually(pod, 30*time.Second, func() string { return b.probe(pod, "read", "/claimed/file") })
		b.checkFiles(pod)
	}
	if out := b.devcluster("up"); !strings.Contains(out, "is up already") {
		b.Fatalf("up on a running cluster:\n%s", out)
	}
}
