package host

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"alineo.dev/devcluster/internal/plan"
)

// ApplyNetwork makes the bridge, and lets its traffic past whatever filters the machine has.
func ApplyNetwork(p plan.Plan) error {
	if !linkExists(p.Bridge()) {
		if _, err := run(words("ip link add %s address %s type bridge", p.Bridge(), p.BridgeMAC())...); err != nil {
			return err
		}
	}
	if err := runAll(bridgeCommands(p)...); err != nil {
		return err
	}
	for _, rule := range filterRules(p) {
		if err := applyRule(nil, "-I", rule); err != nil {
			return err
		}
	}
	return nil
}

func bridgeCommands(p plan.Plan) [][]string {
	return [][]string{
		words("ip addr replace %s/24 dev %s", p.Gateway(), p.Bridge()),
		words("ip link set %s up", p.Bridge()),
		// What is of the cluster's network and has no better route is answered at once, not sent to the world.
		words("ip route replace unreachable %s", p.Network()),
	}
}

// Scheme is everything that the network of a plan consists of, to tell one version of this program from another.
func Scheme(p plan.Plan) [][]string {
	scheme := slices.Concat(bridgeCommands(p), filterRules(p), refusals(p))
	for _, node := range p.Nodes {
		scheme = append(scheme, insideCommands(p, node)...)
	}
	return scheme
}

// applyRule adds a rule unless it is there; where is the command that enters a namespace, if any.
func applyRule(where []string, how string, rule []string) error {
	if _, err := run(slices.Concat(where, words("iptables -w -C"), rule)...); err == nil {
		return nil
	}
	_, err := run(slices.Concat(where, words("iptables -w %s", how), rule)...)
	return err
}

// filterRules accept the bridge's traffic ahead of a firewall's own rules: frames between nodes pass FORWARD
// where br_netfilter is on (container engines set that chain to DROP), and pods reach the API server by INPUT.
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

func linkExists(name string) bool { return exists("/sys/class/net/" + name) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
