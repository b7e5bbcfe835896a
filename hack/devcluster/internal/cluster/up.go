package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"alineo.dev/devcluster/internal/host"
	"alineo.dev/devcluster/internal/image"
	"alineo.dev/devcluster/internal/plan"
	"alineo.dev/devcluster/internal/proc"
	"alineo.dev/devcluster/internal/render"
)

// Up makes the cluster whole, whatever state it is in.
func (c *Cluster) Up(ctx context.Context) error {
	observed, err := c.observe(ctx)
	if err != nil {
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

func (c *Cluster) observe(ctx context.Context) (Observation, error) {
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
	o.Dead = c.dead(render.ControlPlane(c.Layout, c.Plan, c.Tools.Kube, c.Tools.Self))
	for _, node := range c.Plan.Nodes {
		if len(c.dead(render.NodeProcesses(c.Layout, c.Plan, node, c.Tools.Kube))) > 0 {
			o.BrokenNodes = append(o.BrokenNodes, node.Name)
		} else if !host.NodeLinked(node) {
			o.CutNodes = append(o.CutNodes, node.Name)
		}
	}
	if api, err := c.api(); err == nil {
		o.Answers = api.Ready(ctx) == nil
	}
	return o, nil
}

// dead names the processes that do not run.
func (c *Cluster) dead(processes []render.Process) []string {
	var names []string
	for _, process := range processes {
		if record, found := proc.ReadRecord(c.Layout.Records(), process.Name); !found || !record.Alive() {
			names = append(names, process.Name)
		}
	}
	return names
}

func (c *Cluster) mend(ctx context.Context, o Observation) error {
	for _, name := range append(slices.Clone(o.BrokenNodes), o.CutNodes...) {
		node, err := c.Plan.Find(name)
		if err != nil {
			return err
		}
		if slices.Contains(o.CutNodes, name) {
			err = host.JoinNode(node)
		} else {
			err = c.powerOn(node)
		}
		if err != nil {
			return err
		}
	}
	return c.waitNodes(ctx, c.Plan.Nodes)
}

// start begins with a sweep: nothing of an earlier life may be in the way, however that ended.
func (c *Cluster) start(ctx context.Context, o Observation) error {
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

func (c *Cluster) startAll(ctx context.Context) error {
	if err := c.writeFiles(c.machine()); err != nil {
		return err
	}
	if err := image.WriteArchive(c.Layout.Config("pause.tar"), image.Pause, c.Tools.Pause); err != nil {
		return err
	}
	if err := host.ApplyNetwork(c.Plan); err != nil {
		return err
	}
	if err := c.checkListeners(); err != nil {
		return err
	}
	nodes := inParallel(c.Plan.Nodes, c.powerUpRuntime)
	if err := c.startControlPlane(ctx); err != nil {
		return err
	}
	if err := <-nodes; err != nil {
		return err
	}
	for _, node := range c.Plan.Nodes {
		if err := c.startAgents(node); err != nil {
			return err
		}
	}
	return c.waitNodes(ctx, c.Plan.Nodes)
}

func (c *Cluster) startControlPlane(ctx context.Context) error {
	database, server := render.Database(c.Layout, c.Plan, c.Tools.Kube), render.APIServer(c.Layout, c.Plan, c.Tools.Kube)
	if err := c.run(database, server); err != nil {
		return err
	}
	api, err := c.api()
	if err != nil {
		return err
	}
	ready := func() error { return api.Ready(ctx) }
	if err := c.Out.Wait("the API server", 90*time.Second, ready, c.watch(database, server)); err != nil {
		return err
	}
	c.Out.Say("API server is ready at https://%s", c.Plan.API())
	if err := c.applyObjects(ctx, api); err != nil {
		return err
	}
	return c.run(
		render.ControllerManager(c.Layout, c.Plan, c.Tools.Kube), render.Scheduler(c.Layout, c.Plan, c.Tools.Kube),
		render.DNS(c.Layout, c.Tools.Kube), render.Volumes(c.Layout, c.Plan, c.Tools.Self),
	)
}

// run starts processes.
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

// watch returns a check that fails when one of the processes has died, with the end of its log.
func (c *Cluster) watch(processes ...render.Process) func() error {
	return func() error {
		for _, name := range c.dead(processes) {
			return fmt.Errorf("%s has ended; the last lines of %s:\n%s", name, c.Layout.Log(name), tail(c.Layout.Log(name), 10))
		}
		return nil
	}
}

func tail(path string, count int) string {
	body, _ := os.ReadFile(path)
	lines := strings.Split(strings.TrimRight(string(body), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

// waitNodes waits until the nodes are Ready and the DNS server answers.
func (c *Cluster) waitNodes(ctx context.Context, nodes []plan.Node) error {
	api, err := c.api()
	if err != nil {
		return err
	}
	check := func() error {
		ready, err := api.Nodes(ctx)
		if err != nil {
			return err
		}
		for _, node := range nodes {
			if !ready[node.Name] {
				return fmt.Errorf("node %s is not Ready yet", node.Name)
			}
		}
		return dnsReady(c.Plan)
	}
	all := render.Processes(c.Layout, c.Plan, c.Tools.Kube, c.Tools.Self)
	return c.Out.Wait("the nodes", 90*time.Second, check, c.watch(c.expected(all, nodes)...))
}

// expected leaves out the processes of nodes that are not waited for: they may be off on purpose.
func (c *Cluster) expected(processes []render.Process, nodes []plan.Node) []render.Process {
	return slices.DeleteFunc(processes, func(process render.Process) bool {
		return process.Netns != "" && !slices.ContainsFunc(nodes, func(n plan.Node) bool { return n.Netns == process.Netns })
	})
}

func dnsReady(p plan.Plan) error {
	connection, err := net.DialTimeout("tcp", p.DNSReady().String(), time.Second)
	if err != nil {
		return fmt.Errorf("the DNS server is not up yet: %w", err)
	}
	return connection.Close()
}

// inParallel runs one function for every node and hands on the first failure when all have ended.
func inParallel(nodes []plan.Node, act func(plan.Node) error) <-chan error {
	each, all := make(chan error, len(nodes)), make(chan error, 1)
	for _, node := range nodes {
		go func() { each <- act(node) }()
	}
	go func() {
		var first error
		for range nodes {
			if err := <-each; err != nil && first == nil {
				first = err
			}
		}
		all <- first
	}()
	return all
}
