package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"alineo.dev/devcluster/internal/host"
	"alineo.dev/devcluster/internal/plan"
	"alineo.dev/devcluster/internal/render"
)

// waitAPI waits until the API server takes requests.
func (c *Cluster) waitAPI(ctx context.Context, limit time.Duration) error {
	api, err := c.api()
	if err != nil {
		return err
	}
	ready := func() error { return api.Ready(ctx) }
	broken := c.watch(render.Database(c.Layout, c.Plan, c.Tools.Kube), render.APIServer(c.Layout, c.Plan, c.Tools.Kube))
	return c.Out.Wait("the API server", limit, ready, broken)
}

// target is a set of nodes to wait for, from a moment on.
type target struct {
	nodes     []plan.Node
	since     time.Time
	restarted bool
}

// waitWhole waits until the nodes are Ready and the DNS server answers.
func (c *Cluster) waitWhole(ctx context.Context, t target) error {
	api, err := c.api()
	if err != nil {
		return err
	}
	check := func() error {
		states, err := api.Nodes(ctx)
		if err != nil {
			return err
		}
		for _, node := range t.nodes {
			if !states[node.Name].ReadySince(t.since, t.restarted) {
				return fmt.Errorf("node %s is not Ready yet", node.Name)
			}
		}
		return dnsReady(c.Plan)
	}
	return c.Out.Wait("the nodes", startLimit, check, c.watch(c.expected(t.nodes)...))
}

// expected are the processes that must live for these nodes to become Ready; others may be off on purpose.
func (c *Cluster) expected(nodes []plan.Node) []render.Process {
	processes := render.ControlPlane(c.Layout, c.Plan, c.Tools.Kube, c.Tools.Self)
	for _, node := range nodes {
		processes = append(processes, render.NodeProcesses(c.Layout, c.Plan, node, c.Tools.Kube)...)
	}
	return processes
}

// dnsReady asks the DNS server whether it has read the cluster's Services.
func dnsReady(p plan.Plan) error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second} // no proxy
	response, err := client.Get("http://" + p.DNSReady().String() + "/ready")
	if err != nil {
		return fmt.Errorf("the DNS server is not up yet: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the DNS server is not ready yet: %s", response.Status)
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

// on are the nodes that are switched on.
func (c *Cluster) on() []plan.Node {
	return slices.DeleteFunc(slices.Clone(c.Plan.Nodes), func(n plan.Node) bool { return host.ReadCable(n) == host.CableAbsent })
}
