package cluster

import (
	"alineo.dev/devcluster/internal/proc"
	"alineo.dev/devcluster/internal/render"
)

// run starts processes in their order.
func (c *Cluster) run(processes ...render.Process) error {
	for _, process := range processes {
		_, err := proc.Start(c.Layout.Records(), proc.Spec{
			Name: process.Name, Argv: process.Argv, Netns: process.Netns, Log: c.Layout.Log(process.Name), Mark: c.Layout.Dir,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
