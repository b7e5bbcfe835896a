package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"alineo.dev/devcluster/internal/host"
	"alineo.dev/devcluster/internal/plan"
	"alineo.dev/devcluster/internal/render"
)

// nodeVerbs is what can be done to a node.
var nodeVerbs = map[string]func(c *Cluster, ctx context.Context, node plan.Node) error{
	"stop":   (*Cluster).stopNode,
	"start":  (*Cluster).startNode,
	"cut":    (*Cluster).cutNode,
	"join":   (*Cluster).joinNode,
	"reboot": (*Cluster).rebootNode,
}

// Node does one thing to one node of a cluster that is up.
func (c *Cluster) Node(ctx context.Context, verb, name string) error {
	act, known := nodeVerbs[verb]
	if !known {
		return fmt.Errorf("no node command %q: use stop, start, cut, join or reboot", verb)
	}
	node, err := c.Plan.Find(name)
	if err != nil {
		return err
	}
	state, err := readState(c.Layout)
	if err != nil {
		return err
	}
	if state.Phase != PhaseUp {
		return fmt.Errorf("cluster %s is %s: `devcluster up` first", c.Plan.Name, state.Phase)
	}
	return act(c, ctx, node)
}

func (c *Cluster) stopNode(_ context.Context, node plan.Node) error {
	if err := c.powerOff(node); err != nil {
		return err
	}
	c.Out.Say("node %s is off; Kubernetes calls it NotReady in %s", node.Name, render.NodeGrace)
	return nil
}

func (c *Cluster) startNode(ctx context.Context, node plan.Node) error {
	if c.isOn(node) {
		c.Out.Say("node %s is on already", node.Name)
		return nil
	}
	return c.switchOn(ctx, node)
}

func (c *Cluster) switchOn(ctx context.Context, node plan.Node) error {
	since := time.Now()
	if err := c.powerOn(node); err != nil {
		return err
	}
	if err := c.waitWhole(ctx, target{[]plan.Node{node}, since, true}); err != nil {
		return err
	}
	c.Out.Say("node %s is on and Ready", node.Name)
	return nil
}

func (c *Cluster) rebootNode(ctx context.Context, node plan.Node) error {
	if err := c.powerOff(node); err != nil {
		return err
	}
	c.Out.Say("node %s is off", node.Name)
	return c.startNode(ctx, node)
}

func (c *Cluster) cutNode(_ context.Context, node plan.Node) error {
	if err := c.mustBeOn(node); err != nil {
		return err
	}
	if err := host.CutNode(node); err != nil {
		return err
	}
	c.Out.Say("node %s is cut off and goes on running; Kubernetes calls it NotReady in %s", node.Name, render.NodeGrace)
	return nil
}

func (c *Cluster) joinNode(ctx context.Context, node plan.Node) error {
	if err := c.mustBeOn(node); err != nil {
		return err
	}
	since := time.Now()
	if err := host.JoinNode(node); err != nil {
		return err
	}
	if err := c.waitWhole(ctx, target{nodes: []plan.Node{node}, since: since}); err != nil {
		return err
	}
	c.Out.Say("node %s is joined and Ready", node.Name)
	return nil
}

func (c *Cluster) isOn(node plan.Node) bool {
	dead := c.dead(render.NodeProcesses(c.Layout, c.Plan, node, c.Tools.Kube))
	return len(dead) == 0 && slices.ContainsFunc(c.on(), func(n plan.Node) bool { return n.Name == node.Name })
}

func (c *Cluster) mustBeOn(node plan.Node) error {
	if c.isOn(node) {
		return nil
	}
	return fmt.Errorf("node %s is off: `devcluster node start %s` first", node.Name, node.Name)
}

// nodeWord describes a node in one word for the status.
func nodeWord(o Observation, node plan.Node) string {
	words := []struct {
		nodes []string
		word  string
	}{{o.OffNodes, "off"}, {o.CutNodes, "cut"}, {o.UnreadyNodes, "NotReady"}}
	for _, w := range words {
		if slices.Contains(w.nodes, node.Name) {
			return w.word
		}
	}
	if o.State.Phase != PhaseUp || strings.TrimSpace(o.Boot) != o.State.Boot {
		return "off"
	}
	return "Ready"
}
