package host

import (
	"fmt"
	"os"
	"slices"

	"alineo.dev/devcluster/internal/plan"
)

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

// applyInsideNode gives the node its address, its routes and its refusals.
func applyInsideNode(p plan.Plan, n plan.Node) error {
	enter := words("nsenter --net=/run/netns/%s --", n.Netns)
	for _, command := range insideCommands(p, n) {
		if _, err := run(slices.Concat(enter, command)...); err != nil {
			return err
		}
	}
	for _, rule := range refusals(p) {
		if err := applyRule(enter, "-A", rule); err != nil {
			return err
		}
	}
	return nil
}

// insideCommands are run in the node's namespace. The default route only serves to bring a packet to the rules
// that refuse it.
func insideCommands(p plan.Plan, n plan.Node) [][]string {
	commands := [][]string{
		words("ip link set lo up"),
		words("ip addr replace %s/24 dev eth0", n.Address),
		words("ip link set eth0 up"),
		words("ip route replace default via %s", p.Gateway()),
		{"sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"},
	}
	for _, other := range p.Nodes {
		if other.Name != n.Name {
			commands = append(commands, words("ip route replace %s via %s", other.PodSubnet, other.Address))
		}
	}
	return commands
}

// refusals answer whatever would leave the cluster: it needs no way out, and a program that tries is told at once
// instead of waiting. A reset, because the kernel limits how many "unreachable" it sends and TCP may miss one.
func refusals(p plan.Plan) [][]string {
	var rules [][]string
	for _, chain := range []string{"FORWARD", "OUTPUT"} {
		outside := fmt.Sprintf("%s -o eth0 ! -d %s", chain, p.Network())
		rules = append(rules,
			words("%s -p tcp -j REJECT --reject-with tcp-reset", outside),
			words("%s -j REJECT --reject-with icmp-net-unreachable", outside))
	}
	return rules
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

// CutNode takes the cable out.
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

// Cable is the state of a node's connection.
type Cable int

const (
	// CableAbsent is a node without its device: switched off, or damaged from outside.
	CableAbsent Cable = iota
	// CableOut is after CutNode.
	CableOut
	// CableIn is how a node should be.
	CableIn
)

// ReadCable looks at a node's connection.
func ReadCable(n plan.Node) Cable {
	state, err := os.ReadFile(fmt.Sprintf("/sys/class/net/%s/operstate", n.Link))
	switch {
	case err != nil || !exists("/run/netns/"+n.Netns):
		return CableAbsent
	case string(state) == "down\n":
		return CableOut
	default:
		return CableIn
	}
}
