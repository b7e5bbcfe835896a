package cluster

import (
	"fmt"
	"os"
	"strings"
	"time"

	"alineo.dev/devcluster/internal/host"
	"alineo.dev/devcluster/internal/plan"
	"alineo.dev/devcluster/internal/proc"
	"alineo.dev/devcluster/internal/render"
)

// powerOff is a power failure of the node: every process of it and of its pods is killed, what is on disk stays.
func (c *Cluster) powerOff(node plan.Node) error {
	hierarchies, err := host.ReadHierarchies()
	if err != nil {
		return err
	}
	if err := proc.KillMarked(c.Layout.Dir, c.ownedBy(node)); err != nil {
		return err
	}
	if err := killGroup(hierarchies, node.Cgroup); err != nil {
		return err
	}
	return c.clearNode(hierarchies, node)
}

// ownedBy recognises the processes of a node by their command line: each names the node or its directory.
func (c *Cluster) ownedBy(node plan.Node) func(argv []string) bool {
	directory := c.Layout.Node(node.Name).Dir + "/"
	return func(argv []string) bool {
		for _, word := range argv {
			if strings.Contains(word, directory) || word == "--hostname-override="+node.Name {
				return true
			}
		}
		return false
	}
}

// killGroup kills the processes of the pods; nothing else can be in a group of ours.
func killGroup(hierarchies host.Hierarchies, group string) error {
	find := func() []int { return hierarchies.Processes(group) }
	always := func(int) bool { return true }
	return proc.KillAll(find, always, 10*time.Second)
}

// clearNode removes what does not outlive a reboot: mounts, groups, the network and the volatile files.
func (c *Cluster) clearNode(hierarchies host.Hierarchies, node plan.Node) error {
	n := c.Layout.Node(node.Name)
	if err := host.UnmountBelow(n.Dir); err != nil {
		return err
	}
	hierarchies.DeleteCgroup(node.Cgroup)
	if err := host.DeleteNode(node); err != nil {
		return err
	}
	deleteShimSockets(n)
	return os.RemoveAll(n.Volatile())
}

// powerOn clears what a half-dead node left and starts its processes.
func (c *Cluster) powerOn(node plan.Node) error {
	if err := c.powerOff(node); err != nil {
		return err
	}
	if err := c.powerUpRuntime(node); err != nil {
		return err
	}
	return c.startAgents(node)
}

// powerUpRuntime makes the node's machine and starts its container runtime, with the pause image in it.
func (c *Cluster) powerUpRuntime(node plan.Node) error {
	hierarchies, err := host.ReadHierarchies()
	if err != nil {
		return err
	}
	if err := hierarchies.ApplyCgroup(node.Cgroup); err != nil {
		return err
	}
	if err := host.ApplyNode(c.Plan, node); err != nil {
		return err
	}
	if err := c.makeNodeDirectories(node); err != nil {
		return err
	}
	containerd := render.Containerd(c.Layout, node)
	if err := c.run(containerd); err != nil {
		return err
	}
	store := c.store(node)
	responds := func() error {
		if !store.Responds() {
			return fmt.Errorf("containerd of %s does not answer yet", node.Name)
		}
		return nil
	}
	if err := c.Out.Wait("containerd of "+node.Name, 30*time.Second, responds, c.watch(containerd)); err != nil {
		return err
	}
	_, err = loadInto(store, c.Layout.Config("pause.tar"), func() {})
	return err
}

func (c *Cluster) makeNodeDirectories(node plan.Node) error {
	n := c.Layout.Node(node.Name)
	for _, dir := range []string{n.Volatile(), n.ContainerdRoot(), n.KubeletRoot(), n.PodLogs()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, volume := range volumesOf(c.Layout, node) {
		if err := os.MkdirAll(volume.Path, 0o777); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startAgents(node plan.Node) error {
	return c.run(render.Kubelet(c.Layout, node, c.Tools.Kube), render.Proxy(c.Layout, c.Plan, node, c.Tools.Kube))
}
