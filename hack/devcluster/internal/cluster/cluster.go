// Package cluster brings a cluster up and down and changes it. It is where the plan, the rendered files, the
// processes and the machine come together; the deciding is in pure functions (decide.go), the rest acts.
package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"alineo.dev/devcluster/internal/host"
	"alineo.dev/devcluster/internal/image"
	"alineo.dev/devcluster/internal/kubeapi"
	"alineo.dev/devcluster/internal/plan"
	"alineo.dev/devcluster/internal/render"
)

// Tools are the programs that a cluster is made of.
type Tools struct {
	// Kube holds the Kubernetes processes, Self is this program, Pause is the program of the pause image.
	Kube, Self, Pause string
}

// Cluster is one cluster that has a place on the machine.
type Cluster struct {
	Plan   plan.Plan
	Layout render.Layout
	Tools  Tools
	Out    *Progress
}

// ErrAbsent is returned for a cluster that was never made or was destroyed.
var ErrAbsent = errors.New("there is no such cluster")

// ToolsIn returns the tools of a cache's bin directory, or a sentence that says which one must be built first.
func ToolsIn(cache string) (Tools, error) {
	bin := filepath.Join(cache, "bin")
	tools := Tools{Kube: filepath.Join(bin, "kube"), Self: filepath.Join(bin, "devcluster"), Pause: filepath.Join(bin, "pause")}
	for target, path := range map[string]string{"kube": tools.Kube, "devcluster": tools.Pause} {
		if _, err := os.Stat(path); err != nil {
			return Tools{}, fmt.Errorf("%s is missing: build it with `python3 hack/toolchain/toolchain.py %s`", path, target)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return Tools{}, err
	}
	tools.Self = self
	return tools, nil
}

// Open returns a cluster that exists; ErrAbsent when it does not.
func Open(cache, name string, out *Progress) (*Cluster, error) {
	layout := render.NewLayout(cache, name)
	state, err := readState(layout)
	if err != nil {
		return nil, err
	}
	p, err := plan.New(name, state.Index)
	if err != nil {
		return nil, err
	}
	return &Cluster{Plan: p, Layout: layout, Out: out}, nil
}

// Create returns the cluster of that name and makes a place for it if it has none.
func Create(cache, name, checkout string, out *Progress) (*Cluster, error) {
	c, err := Open(cache, name, out)
	if !errors.Is(err, ErrAbsent) {
		return c, err
	}
	if _, err := Examine(cache, name); err != nil {
		return nil, err
	}
	layout := render.NewLayout(cache, name)
	unlock, err := Lock(cache, "allocation", Exclusive, out)
	if err != nil {
		return nil, err
	}
	defer unlock()
	index, err := chooseIndex(cache, name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(layout.Dir, 0o755); err != nil {
		return nil, err
	}
	if err := writeState(layout, State{Name: name, Index: index, Checkout: checkout, Phase: PhaseDown}); err != nil {
		return nil, err
	}
	return Open(cache, name, out)
}

func chooseIndex(cache, name string) (int, error) {
	inUse, err := host.ReadPrefixesInUse("")
	if err != nil {
		return 0, err
	}
	return plan.Choose(name, inUse, readClaims(cache))
}

func (c *Cluster) api() (*kubeapi.Client, error) { return kubeapi.New(c.Plan.API(), c.Layout.PKI()) }

func (c *Cluster) store(node plan.Node) image.Store {
	return image.Store{Socket: c.Layout.Node(node.Name).Socket(), Snapshotter: c.machine().Snapshotter}
}

func (c *Cluster) machine() render.Machine {
	snapshotter := "overlayfs"
	if !host.CanOverlay(c.Layout.Dir) {
		snapshotter = "native"
	}
	return render.Machine{Snapshotter: snapshotter, MayRaiseOOMScore: host.HasCapability(host.CapSysResource)}
}
