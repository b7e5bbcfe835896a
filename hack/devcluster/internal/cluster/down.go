package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"alineo.dev/devcluster/internal/host"
	"alineo.dev/devcluster/internal/proc"
	"alineo.dev/devcluster/internal/render"
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
	if err := deleteDirectory(c.Layout, os.RemoveAll); err != nil {
		return err
	}
	c.Out.Say("cluster %s is gone", c.Plan.Name)
	return nil
}

// deleteDirectory removes the state last: while it is there, the next destroy finds what this one may not get to.
func deleteDirectory(layout render.Layout, remove func(path string) error) error {
	entries, err := os.ReadDir(layout.Dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(layout.Dir, entry.Name())
		if path == statePath(layout) {
			continue
		}
		if err := remove(path); err != nil {
			return err
		}
	}
	if err := remove(statePath(layout)); err != nil {
		return err
	}
	return remove(layout.Dir)
}

// DeleteRemains removes the directory of a cluster that has no state: nothing of it was ever started, or all of it
// was ended before the state went. It says whether there was one.
func DeleteRemains(cache, name string) (bool, error) {
	layout := render.NewLayout(cache, name)
	if _, err := os.Stat(layout.Dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if pids := proc.FindMarked(layout.Dir, proc.Everything); len(pids) > 0 {
		return true, fmt.Errorf("%s is missing, but processes %v of cluster %s run: end them and try again", statePath(layout), pids, name)
	}
	if err := host.UnmountBelow(layout.Dir); err != nil {
		return true, err
	}
	deleteLeftovers(layout)
	return true, os.RemoveAll(layout.Dir)
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
