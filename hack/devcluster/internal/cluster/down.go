package cluster

import (
	"os"
	"slices"
	"syscall"
	"time"

	"alineo.dev/devcluster/internal/host"
	"alineo.dev/devcluster/internal/proc"
)

// Down ends every process and removes everything outside the cluster's directory; data and images stay in it.
func (c *Cluster) Down() error {
	if err := c.sweep(); err != nil {
		return err
	}
	state, err := readState(c.Layout)
	if err != nil {
		return err
	}
	state.Phase = PhaseDown
	if err := writeState(c.Layout, state); err != nil {
		return err
	}
	c.Out.Say("cluster %s is down; its data is kept in %s", c.Plan.Name, c.Layout.Dir)
	return nil
}

// Destroy leaves nothing of the cluster.
func (c *Cluster) Destroy() error {
	if err := c.sweep(); err != nil {
		return err
	}
	deleteLeftovers(c.Layout)
	if err := os.RemoveAll(c.Layout.Dir); err != nil {
		return err
	}
	c.Out.Say("cluster %s is gone", c.Plan.Name)
	return nil
}

// sweep finds and removes what any life of this cluster can have left, by marks and names and not by memory.
func (c *Cluster) sweep() error {
	hierarchies, err := host.ReadHierarchies()
	if err != nil {
		return err
	}
	if err := proc.KillMarked(c.Layout.Dir, notDatabase); err != nil {
		return err
	}
	for _, node := range c.Plan.Nodes {
		if err := killGroup(hierarchies, node.Cgroup); err != nil {
			return err
		}
		if err := c.clearNode(hierarchies, node); err != nil {
			return err
		}
	}
	c.endDatabase()
	if err := proc.KillMarked(c.Layout.Dir, proc.Everything); err != nil {
		return err
	}
	if err := host.DeleteNetwork(c.Plan); err != nil {
		return err
	}
	return os.RemoveAll(c.Layout.Records())
}

func notDatabase(argv []string) bool { return !slices.Contains(argv, "etcd") }

// endDatabase gives etcd, which has no clients any more, a moment to close its files in order.
func (c *Cluster) endDatabase() {
	record, found := proc.ReadRecord(c.Layout.Records(), "etcd")
	if !found || record.Signal(syscall.SIGTERM) != nil {
		return
	}
	for deadline := time.Now().Add(3 * time.Second); record.Running() && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
}
