package cluster

import (
	"context"

	"alineo.dev/devcluster/internal/host"
	"alineo.dev/devcluster/internal/kubeapi"
	"alineo.dev/devcluster/internal/plan"
	"alineo.dev/devcluster/internal/proc"
	"alineo.dev/devcluster/internal/render"
)

// Observe looks at the cluster and changes nothing.
func (c *Cluster) Observe(ctx context.Context) (Observation, error) {
	state, err := readState(c.Layout)
	if err != nil {
		return Observation{}, err
	}
	build, err := c.build(c.machine())
	if err != nil {
		return Observation{}, err
	}
	o := Observation{State: state, Boot: proc.BootID(), Build: build}
	if state.Phase != PhaseUp || state.Boot != o.Boot {
		return o, nil
	}
	processes := render.ControlPlane(c.Layout, c.Plan, c.Tools.Kube, c.Tools.Self)
	o.Dead = c.dead(processes)
	o.AllDead = len(o.Dead) == len(processes)
	var states map[string]kubeapi.NodeState
	if api, err := c.api(); err == nil {
		o.Answers = api.Ready(ctx) == nil
		states, _ = api.Nodes(ctx)
	}
	for _, node := range c.Plan.Nodes {
		c.observeNode(&o, node, states[node.Name].Ready)
	}
	return o, nil
}

func (c *Cluster) observeNode(o *Observation, node plan.Node, ready bool) {
	off := len(c.dead(render.NodeProcesses(c.Layout, c.Plan, node, c.Tools.Kube))) > 0
	switch cable := host.ReadCable(node); {
	case off || cable == host.CableAbsent:
		o.OffNodes = append(o.OffNodes, node.Name)
	case cable == host.CableOut:
		o.CutNodes = append(o.CutNodes, node.Name)
	case !ready:
		o.UnreadyNodes = append(o.UnreadyNodes, node.Name)
	}
}

// dead names the processes that do not run.
func (c *Cluster) dead(processes []render.Process) []string {
	var names []string
	for _, process := range processes {
		if record, found := proc.ReadRecord(c.Layout.Records(), process.Name); !found || !record.Running() {
			names = append(names, process.Name)
		}
	}
	return names
}
