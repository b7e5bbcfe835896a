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
	begin := time.Now()
	did, err := loadInto(c.store(node), archive)
	if err != nil {
		return err
	}
	if !did {
		c.Out.Say("%s: %s is there already", node.Name, filepath.Base(archive))
		return nil
	}
	c.Out.Say("%s: %s loaded in %.1fs", node.Name, filepath.Base(archive), time.Since(begin).Seconds())
	return nil
}

func (c *Cluster) forgetSuperseded(node plan.Node) error {
	targets, err := c.store(node).Targets()
	if err != nil {
		return err
	}
	return c.store(node).Delete(image.Superseded(targets))
}

// loadInto imports an archive unless every image in it is there; it says whether it did anything.
func loadInto(store image.Store, archive string) (bool, error) {
	images, err := image.ReadArchive(archive)
	if err != nil {
		return false, err
	}
	held, err := store.Holds(images)
	if err != nil || held {
		return false, err
	}
	return true, store.Import(archive)
}
