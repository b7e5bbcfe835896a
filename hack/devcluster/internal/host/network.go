package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"alineo.dev/devcluster/internal/plan"
)

// ApplyNetwork makes the bridge, and lets its traffic past whatever filters the machine has.
func ApplyNetwork(p plan.Plan) error {
	if !linkExists(p.Bridge()) {
		if _, err := run(words("ip link add %s address %s type bridge", p.Bridge(), p.BridgeMAC())...); err != nil {
			return err
		}
	}
	err := runAll(
		words("ip addr replace %s/24 dev %s", p.Gateway(), p.Bridge()),
		words("ip link set %s up", p.Bridge()),
		// What is of the cluster's network and has no better route is answered at once, not sent to the world.
		words("ip route replace unreachable %s", p.Network()),
	)
	if err != nil {
		return err
	}
	return applyFilters(p)
}

// applyFilters accepts the bridge's traffic ahead of a firewall's own rules: frames between nodes pass FORWARD
// where br_netfilter is on (container engines set that chain to DROP), and pods reach the API server by INPUT.
func applyFilters(p plan.Plan) error {
	for _, rule := range filterRules(p) {
		if _, err := run(append(words("iptables -w -C"), rule...)...); err == nil {
			continue
		}
		if _, err := run(append(words("iptables -w -I"), rule...)...); err != nil {
			return err
		}
	}
	return nil
}

func filterRules(p plan.Plan) [][]string {
	return [][]string{
		words("INPUT -i %s -j ACCEPT", p.Bridge()),
		words("FORWARD -i %s -o %s -j ACCEPT", p.Bridge(), p.Bridge()),
	}
}

// DeleteNetwork removes the bridge and the filter rules.
func DeleteNetwork(p plan.Plan) error {
	for _, rule := range filterRules(p) {
		for {
			if _, err := run(append(words("iptables -w -D"), rule...)...); err != nil {
				break
			}
		}
	}
	_, _ = run(words("ip route del unreachable %s", p.Network())...)
	if !linkExists(p.Bridge()) {
		return nil
	}
	_, err := run(words("ip link del %s", p.Bridge())...)
	return err
}

// ApplyNode makes a node's network namespace and plugs its cable into the bridge.
func ApplyNode(p plan.Plan, n plan.Node) error {
	if !exists("/run/netns/" + n.Netns) {
		if _, err := run(words("ip netns add %s", n.Netns)...); err != nil {
			return err
		}
	}
	if !linkExists(n.Link) {
		err := runAll(
			words("ip link add %s type veth peer name eth0 address %s netns %s", n.Link, n.MAC, n.Netns),
			words("ip link set %s master %s", n.Link, p.Bridge()),
		)
		if err != nil {
			return err
		}
	}
	if err := applyInsideNode(p, n); err != nil {
		return err
	}
	return runAll(
		words("ip link set %s up", n.Link),
		words("ip route replace %s via %s", n.PodSubnet, n.Address),
	)
}

// applyInsideNode gives the node its address and its routes. There is no default route: pods need no way out,
// and a program that tries gets "network is unreachable" at once instead of a long silence.
func applyInsideNode(p plan.Plan, n plan.Node) error {
	inside := func(format string, values ...any) []string {
		return append(words("nsenter --net=/run/netns/%s --", n.Netns), words(format, values...)...)
	}
	commands := [][]string{
		inside("ip link set lo up"),
		inside("ip addr replace %s/24 dev eth0", n.Address),
		inside("ip link set eth0 up"),
		// A process of the node itself looks up a route before its packet to a ClusterIP is rewritten.
		inside("ip route replace %s via %s", p.ServiceSubnet(), p.Gateway()),
		append(inside("sh -c"), "echo 1 > /proc/sys/net/ipv4/ip_forward"),
	}
	for _, other := range p.Nodes {
		if other.Name != n.Name {
			commands = append(commands, inside("ip route replace %s via %s", other.PodSubnet, other.Address))
		}
	}
	return runAll(commands...)
}

// DeleteNode removes a node's namespace, and with it its cable and everything its pods had.
func DeleteNode(n plan.Node) error {
	if linkExists(n.Link) {
		if _, err := run(words("ip link del %s", n.Link)...); err != nil {
			return err
		}
	}
	if !exists("/run/netns/" + n.Netns) {
		return nil
	}
	_, err := run(words("ip netns del %s", n.Netns)...)
	return err
}

// CutNode takes the cable out; JoinNode puts it back.
func CutNode(n plan.Node) error {
	_, err := run(words("ip link set %s down", n.Link)...)
	return err
}

// JoinNode undoes CutNode; the kernel dropped the route to the node's pods with the link.
func JoinNode(n plan.Node) error {
	return runAll(
		words("ip link set %s up", n.Link),
		words("ip route replace %s via %s", n.PodSubnet, n.Address),
	)
}

// NodeLinked says whether the node's cable is in.
func NodeLinked(n plan.Node) bool {
	flags, err := os.ReadFile(fmt.Sprintf("/sys/class/net/%s/operstate", n.Link))
	return err == nil && string(flags) != "down\n"
}

func linkExists(name string) bool { return exists("/sys/class/net/" + name) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
