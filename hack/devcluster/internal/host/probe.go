package host

import (
	"errors"
	"os"
)

// probeKernel tries, in namespaces that vanish with the attempt, what the nodes will need.
func probeKernel(h Hierarchies) map[string]error {
	isolated := func(script string) error {
		_, err := run("unshare", "--net", "--mount", "--", "sh", "-ec", script)
		return err
	}
	probes := map[string]error{
		"network namespaces":              isolated("true"),
		"process namespaces":              tryProcessNamespace(),
		"bridge devices":                  isolated("ip link add probe0 type bridge"),
		"virtual cables (veth)":           isolated("ip link add probe0 type veth peer name probe1"),
		"address rewriting by iptables":   isolated("iptables -t nat -A POSTROUTING -m comment --comment probe -j MASQUERADE"),
		"connection state in iptables":    isolated("iptables -A FORWARD -m conntrack --ctstate INVALID -j DROP"),
		"random choice in iptables":       isolated("iptables -t nat -A PREROUTING -m statistic --mode random --probability 0.5 -j ACCEPT"),
		"refusals in iptables":            isolated("iptables -A FORWARD -p tcp -j REJECT --reject-with tcp-reset"),
		"packet marks in iptables":        isolated("iptables -t nat -A PREROUTING -j MARK --or-mark 0x4000"),
		"new groups in every cgroup":      tryCgroup(h),
		"named network namespaces (/run)": tryRun(),
	}
	return probes
}

func tryProcessNamespace() error {
	_, err := run("unshare", "--pid", "--fork", "--ipc", "--uts", "--mount", "--", "true")
	return err
}

func tryCgroup(h Hierarchies) error {
	name := "/alineod-probe"
	defer h.DeleteCgroup(name)
	return h.ApplyCgroup(name)
}

func tryRun() error {
	probe, err := os.MkdirTemp("/run", "alineod-probe-")
	if err != nil {
		return err
	}
	return errors.Join(os.Remove(probe))
}
