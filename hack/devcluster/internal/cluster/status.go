package cluster

import (
	"fmt"
	"strings"
)

// Status describes the cluster for a person; whole is false when `up` would have something to do.
func (c *Cluster) Status(o Observation) (text string, whole bool) {
	decision := Decide(o)
	var out strings.Builder
	line := func(key, format string, values ...any) {
		fmt.Fprintf(&out, "%-12s %s\n", key, fmt.Sprintf(format, values...))
	}
	line("cluster", "%s (%s)", c.Plan.Name, decision.Reason)
	if o.State.Checkout != "" {
		line("checkout", "%s", o.State.Checkout)
	}
	line("api server", "https://%s", c.Plan.API())
	line("host", "%s, as pods see it", c.Plan.Gateway())
	for _, node := range c.Plan.Nodes {
		line("node "+node.Name, "%s, pods %s: %s", node.Address, node.PodSubnet, nodeWord(o, node))
	}
	if len(o.Dead) > 0 {
		line("ended", "%s", strings.Join(o.Dead, ", "))
	}
	line("kubeconfig", "%s", c.Layout.Kubeconfig())
	line("audit log", "%s", c.Layout.Audit())
	line("directory", "%s", c.Layout.Dir)
	return out.String(), decision.Verb == Nothing
}

// Environment is what a shell evaluates to use the cluster. proxied says whether the shell sends requests
// through a proxy, which cannot know the cluster.
func (c *Cluster) Environment(bin string, proxied bool) string {
	text := fmt.Sprintf("export KUBECONFIG=%s\nexport PATH=%s:\"$PATH\"\n", quote(c.Layout.Kubeconfig()), quote(bin))
	if proxied {
		for _, variable := range []string{"NO_PROXY", "no_proxy"} {
			text += fmt.Sprintf("export %[1]s=\"${%[1]s:+$%[1]s,}%[2]s,%[3]s\"\n", variable, c.Plan.Gateway(), c.Plan.Network())
		}
	}
	return text
}

// quote makes one word of a path for any shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
