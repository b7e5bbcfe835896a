package render

import (
	"net/netip"
	"strconv"

	"alineo.dev/devcluster/internal/plan"
)

// Containerd is a node's container runtime.
func Containerd(l Layout, node plan.Node) Process {
	return Process{Name: "containerd-" + node.Name, Netns: node.Netns, Argv: []string{
		"containerd", "--config", l.Node(node.Name).Containerd(),
	}}
}

// Kubelet is a node's agent.
func Kubelet(l Layout, node plan.Node, kube string) Process {
	n := l.Node(node.Name)
	return Process{Name: "kubelet-" + node.Name, Netns: node.Netns, Argv: []string{
		kube, "kubelet", "--config=" + n.Kubelet(), "--kubeconfig=" + l.Config(node.Name+".kubeconfig"),
		"--hostname-override=" + node.Name, "--node-ip=" + node.Address.String(),
		"--root-dir=" + n.KubeletRoot(), "--cert-dir=" + n.KubeletRoot() + "/pki", "--v=1",
	}}
}

// Proxy is a node's kube-proxy. A network namespace may not set the host's connection table, so its sizes
// and timeouts are left alone.
func Proxy(l Layout, p plan.Plan, node plan.Node, kube string) Process {
	return Process{Name: "kube-proxy-" + node.Name, Netns: node.Netns, Argv: []string{
		kube, "kube-proxy", "--kubeconfig=" + l.Config("proxy.kubeconfig"), "--hostname-override=" + node.Name,
		"--proxy-mode=iptables", "--cluster-cidr=" + p.PodNetwork().String(), "--bind-address=" + node.Address.String(),
		"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
		"--conntrack-udp-timeout=0", "--conntrack-udp-timeout-stream=0",
	}}
}

// NodeProcesses are the processes of a node in the order of their start.
func NodeProcesses(l Layout, p plan.Plan, node plan.Node, kube string) []Process {
	return []Process{Containerd(l, node), Kubelet(l, node, kube), Proxy(l, p, node, kube)}
}

// ControlPlane are the processes of the host in the order of their start.
func ControlPlane(l Layout, p plan.Plan, kube, self string) []Process {
	return []Process{
		Database(l, p, kube), APIServer(l, p, kube), ControllerManager(l, p, kube), Scheduler(l, p, kube),
		DNS(l, kube), Volumes(l, p, self),
	}
}

// Processes are all processes of the cluster.
func Processes(l Layout, p plan.Plan, kube, self string) []Process {
	all := ControlPlane(l, p, kube, self)
	for _, node := range p.Nodes {
		all = append(all, NodeProcesses(l, p, node, kube)...)
	}
	return all
}

func port(a netip.AddrPort) string { return strconv.Itoa(int(a.Port())) }
