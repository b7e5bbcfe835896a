package cluster

import (
	"fmt"
	"path/filepath"
	"time"

	"alineo.dev/devcluster/internal/image"
	"alineo.dev/devcluster/internal/plan"
)

// Load puts docker archives into every node that is on, and forgets earlier images of the same names.
func (c *Cluster) Load(archives []string) error {
	nodes := c.on()
	if len(nodes) == 0 {
		return fmt.Errorf("cluster %s is down: `devcluster up` first", c.Plan.Name)
	}
	for _, archive := range archives {
		if _, err := image.ReadArchive(archive); err != nil {
			return err
		}
	}
	return <-inParallel(nodes, func(node plan.Node) error {
		for _, archive := range archives {
			if err := c.loadOne(node, archive); err != nil {
				return fmt.Errorf("node %s: %w", node.Name, err)
			}
		}
		return c.forgetSuperseded(node)
	})
}

func (c *Cluster) loadOne(node plan.Node, archive string) error {
	begin, name := time.Now(), filepath.Base(archive)
	announce := func() { c.Out.Say("%s: loading %s", node.Name, name) }
	did, err := loadInto(c.store(node), archive, announce)
	switch {
	case err != nil:
		return err
	case did:
		c.Out.Say("%s: loaded %s in %.1fs", node.Name, name, time.Since(begin).Seconds())
	default:
		c.Out.Say("%s: %s is there already", node.Name, name)
	}
	return nil
}

func (c *Cluster) forgetSuperseded(node plan.Node) error {
	targets, err := c.store(node).Targets()
	if err != nil {
		return err
	}
	return c.store(node).Delete(image.Superseded(targets))
}

// loadInto imports an archive unless every image in it is there, and says whether it did; announce is called
// before the part that takes time.
func loadInto(store image.Store, archive string, announce func()) (bool, error) {
	images, err := image.ReadArchive(archive)
	if err != nil {
		return false, err
	}
	held, err := store.Holds(images)
	if err != nil || held {
		return false, err
	}
	announce()
	return true, store.Import(archive)
}
