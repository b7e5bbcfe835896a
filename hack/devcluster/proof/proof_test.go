//go:build proof

// Package proof shows on the machine at hand that a cluster of this program is a real one and survives what
// may be done to it. Run it as root with the programs built: go test -tags proof -v -timeout 20m ./proof
package proof

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"alineo.dev/devcluster/internal/image"
)

const probeImage = "localhost/alineod/probe:1"

// bench is a cluster under proof.
type bench struct {
	*testing.T
	name, cache string
}

func newBench(t *testing.T, name string) *bench {
	t.Helper()
	cache := os.Getenv("ALINEOD_CACHE")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache", "alineod")
	}
	b := &bench{t, name, cache}
	b.devcluster("destroy")
	t.Cleanup(func() { b.devcluster("destroy") })
	return b
}

func (b *bench) command(args ...string) *exec.Cmd {
	args = append(args, "--name", b.name, "--cache", b.cache)
	return exec.Command(filepath.Join(b.cache, "bin", "devcluster"), args...)
}

// devcluster runs the program, prints its time and returns its output.
func (b *bench) devcluster(args ...string) string {
	b.Helper()
	begin := time.Now()
	out, err := b.command(args...).CombinedOutput()
	if err != nil {
		b.Fatalf("devcluster %v: %v\n%s", args, err, out)
	}
	b.Logf("%5.1fs devcluster %s", time.Since(begin).Seconds(), strings.Join(args, " "))
	return string(out)
}

func (b *bench) tryKubectl(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(b.cache, "bin", "kube"), append([]string{"kubectl"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(b.cache, "clusters", b.name, "kubeconfig"))
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (b *bench) kubectl(args ...string) string {
	b.Helper()
	out, err := b.tryKubectl(args...)
	if err != nil {
		b.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return out
}

// eventually asks until the answer is the wanted one.
func (b *bench) eventually(want string, limit time.Duration, ask func() string) {
	b.Helper()
	begin := time.Now()
	for got := ask(); got != want; got = ask() {
		if time.Since(begin) > limit {
			b.Fatalf("after %s: got %q, want %q", limit, got, want)
		}
		time.Sleep(200 * time.Millisecond)
	}
	b.Logf("%5.1fs until %q", time.Since(begin).Seconds(), want)
}

func (b *bench) probe(pod string, args ...string) string {
	out, _ := b.tryKubectl(append([]string{"exec", pod, "--", "/program"}, args...)...)
	return out
}

func (b *bench) field(object, path string) string {
	out, _ := b.tryKubectl("get", object, "-o", "jsonpath="+path)
	return out
}

func (b *bench) nodeReady(node string) func() string {
	return func() string { return b.field("node/"+node, `{.status.conditions[?(@.type=="Ready")].status}`) }
}

// deploy builds the probe image, loads it and starts a pod on each node.
func (b *bench) deploy() {
	b.Helper()
	program, archive := filepath.Join(b.TempDir(), "probe"), filepath.Join(b.TempDir(), "probe.tar")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "./probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	// The second time under the same name it is another image: the tag has moved.
	for range 2 {
		if err := image.WriteArchive(archive, probeImage, program); err != nil {
			b.Fatal(err)
		}
		b.expect(2, "loaded probe.tar", "load", archive)
		b.expect(2, "is there already", "load", archive)
		b.appendTo(program)
	}
	b.kubectl("apply", "-f", "manifest.yaml")
	b.waitPods()
}

// appendTo makes another program of it that does the same.
func (b *bench) appendTo(program string) {
	file, err := os.OpenFile(program, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("\n"); err != nil {
		b.Fatal(err)
	}
}

// expect runs devcluster and counts a phrase in what it says.
func (b *bench) expect(count int, phrase string, args ...string) {
	b.Helper()
	if out := b.devcluster(args...); strings.Count(out, phrase) != count {
		b.Fatalf("devcluster %v should say %q %d times:\n%s", args, phrase, count, out)
	}
}

func (b *bench) waitPods() {
	b.Helper()
	begin := time.Now()
	b.kubectl("wait", "--for=condition=Ready", "pod", "-l", "app=probe", "--timeout=120s")
	b.Logf("%5.1fs until both pods are Ready", time.Since(begin).Seconds())
}

func fetch(url string) string {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{}}
	response, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return string(body)
}
