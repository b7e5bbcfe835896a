package cluster

import (
	"fmt"
	"net"

	"alineo.dev/devcluster/internal/host"
)

// checkPlace refuses to start where the cluster's network has come into use by something else.
func (c *Cluster) checkPlace() error {
	inUse, err := host.ReadPrefixesInUse(c.Plan.Bridge())
	if err != nil {
		return err
	}
	if other, overlaps := c.Plan.Overlap(inUse); overlaps {
		return fmt.Errorf("the network %s of cluster %s is now in use on this machine (%s): end what uses it, or `devcluster destroy` and `devcluster up` to get another network",
			c.Plan.Network(), c.Plan.Name, other)
	}
	return nil
}

// checkListeners finds an address that something else holds before a process dies of it.
func (c *Cluster) checkListeners() error {
	for process, address := range c.Plan.Listeners() {
		listener, err := net.Listen("tcp", address.String())
		if err != nil {
			return fmt.Errorf("%s cannot listen on %s: %w; find the process that does with `ss -ltnp`", process, address, err)
		}
		listener.Close()
	}
	return nil
}
