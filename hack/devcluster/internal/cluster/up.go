package cluster

import (
	"context"
	"slices"
	"time"

	"alineo.dev/devcluster/internal/host"
	"alineo.dev/devcluster/internal/image"
	"alineo.dev/devcluster/internal/render"
)

// startLimit is how long the API server or the nodes may take on a slow machine that does other things too.
const startLimit = 2 * time.Minute

// hangLimit is how long an API server that was ready once may be silent.
const hangLimit = 30 * time.Second

// Up makes the cluster whole, whatever state it is in.
func (c *Cluster) Up(ctx context.Context) error {
	observed, err := c.Observe(ctx)
	if err != nil {
		return err
	}
	if observed, err = c.giveTime(ctx, observed); err != nil {
		return err
	}
	decision := Decide(observed)
	switch decision.Verb {
	case Nothing:
		c.Out.Say("cluster %s is up already", c.Plan.Name)
		return nil
	case Mend:
		c.Out.Say("mending cluster %s: %s", c.Plan.Name, decision.Reason)
		return c.mend(ctx, observed)
	case Start:
		c.Out.Say("starting cluster %s: %s", c.Plan.Name, decision.Reason)
		return c.start(ctx, observed)
	default:
		panic("unknown verb")
	}
}

// giveTime waits for an API server that lives and does not answer: on a busy machine that passes, and starting
// everything anew would end every pod.
func (c *Cluster) giveTime(ctx context.Context, o Observation) (Observation, error) {
	if o.State.Phase != PhaseUp || o.State.Boot != o.Boot || o.Answers || len(o.Dead) > 0 {
		return o, nil
	}
	if err := c.waitAPI(ctx, hangLimit); err != nil {
		c.Out.Say("%v", err)
	}
	return c.Observe(ctx)
}

func (c *Cluster) mend(ctx context.Context, o Observation) error {
	since := time.Now()
	if err := host.ApplyNetwork(c.Plan); err != nil {
		return err
	}
	if err := c.mendControlPlane(ctx, o.Dead); err != nil {
		return err
	}
	for _, node := range c.Plan.Nodes {
		switch {
		case slices.Contains(o.OffNodes, node.Name):
			if err := c.switchOn(ctx, node); err != nil {
				return err
			}
		case slices.Contains(o.CutNodes, node.Name):
			c.Out.Say("joining node %s", node.Name)
			if err := host.JoinNode(node); err != nil {
				return err
			}
		}
	}
	if err := c.waitWhole(ctx, target{nodes: c.Plan.Nodes, since: since}); err != nil {
		return err
	}
	c.Out.Say("cluster %s is up", c.Plan.Name)
	return nil
}

// mendControlPlane starts what has ended. The others wait for the API server: some give up when it is slow to come.
func (c *Cluster) mendControlPlane(ctx context.Context, dead []string) error {
	for _, process := range render.ControlPlane(c.Layout, c.Plan, c.Tools.Kube, c.Tools.Self) {
		if !slices.Contains(dead, process.Name) {
			continue
		}
		c.Out.Say("starting %s, which has ended; its last log is %s.1", process.Name, c.Layout.Log(process.Name))
		if err := c.run(process); err != nil {
			return err
		}
		if process.Name == "etcd" {
			continue // the API server is next, and may be what is missing
		}
		if err := c.waitAPI(ctx, startLimit); err != nil {
			return err
		}
	}
	return c.waitAPI(ctx, startLimit)
}

// start begins with a sweep: nothing of an earlier life may be in the way, however that ended.
func (c *Cluster) start(ctx context.Context, o Observation) error {
	if _, err := Examine(c.Layout.Cache(), c.Plan.Name); err != nil {
		return err
	}
	if err := c.sweep(); err != nil {
		return err
	}
	if err := c.checkPlace(); err != nil {
		return err
	}
	state := o.State
	state.Phase, state.Boot, state.Build = PhaseStarting, o.Boot, o.Build
	if err := writeState(c.Layout, state); err != nil {
		return err
	}
	if err := c.startAll(ctx); err != nil {
		return err
	}
	state.Phase = PhaseUp
	if err := writeState(c.Layout, state); err != nil {
		return err
	}
	c.Out.Say("cluster %s is up", c.Plan.Name)
	return nil
}

// startAll starts the nodes' container runtimes while the control plane comes up.
func (c *Cluster) startAll(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return err
	}
	runtimes := inParallel(c.Plan.Nodes, c.powerUpRuntime)
	controlPlane := c.startControlPlane(ctx)
	if err := <-runtimes; err != nil {
		return err
	}
	if controlPlane != nil {
		return controlPlane
	}
	since := time.Now()
	for _, node := range c.Plan.Nodes {
		if err := c.startAgents(node); err != nil {
			return err
		}
	}
	return c.waitWhole(ctx, target{c.Plan.Nodes, since, true})
}

func (c *Cluster) prepare() error {
	if err := c.writeFiles(c.machine()); err != nil {
		return err
	}
	if err := image.WriteArchive(c.Layout.Config("pause.tar"), image.Pause, c.Tools.Pause); err != nil {
		return err
	}
	if err := host.ApplyNetwork(c.Plan); err != nil {
		return err
	}
	return c.checkListeners()
}

func (c *Cluster) startControlPlane(ctx context.Context) error {
	err := c.run(render.Database(c.Layout, c.Plan, c.Tools.Kube), render.APIServer(c.Layout, c.Plan, c.Tools.Kube))
	if err != nil {
		return err
	}
	if err := c.waitAPI(ctx, startLimit); err != nil {
		return err
	}
	c.Out.Say("API server is ready at https://%s", c.Plan.API())
	if err := c.applyObjects(ctx); err != nil {
		return err
	}
	return c.run(
		render.ControllerManager(c.Layout, c.Plan, c.Tools.Kube), render.Scheduler(c.Layout, c.Plan, c.Tools.Kube),
		render.DNS(c.Layout, c.Tools.Kube), render.Volumes(c.Layout, c.Plan, c.Tools.Self),
	)
}
