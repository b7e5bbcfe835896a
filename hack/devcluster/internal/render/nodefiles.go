package render

import (
	"fmt"

	"alineo.dev/devcluster/internal/image"
	"alineo.dev/devcluster/internal/plan"
)

// Machine is what the rendering must know of the host.
type Machine struct {
	// Snapshotter is "overlayfs", or "native" where the file system cannot be overlaid.
	Snapshotter string
	// MayRaiseOOMScore is false without CAP_SYS_RESOURCE; then containerd must not try or no pod starts.
	MayRaiseOOMScore bool
}

// ContainerdConfig is a node's containerd.toml.
func ContainerdConfig(n NodeLayout, m Machine) string {
	return fmt.Sprintf(`version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = %q
[debug]
  level = "warn"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = %t
  # the namespaces of pods lie below the state directory, not in the /run/netns that all nodes share
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = %q
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = %q
`, n.ContainerdRoot(), n.ContainerdState(), n.Socket(), image.Pause, !m.MayRaiseOOMScore, n.CNI(), m.Snapshotter, n.Volatile()+"/runc")
}

// PodNetworkConfig is a node's CNI configuration: every pod is a routed point-to-point link, so the node's
// packet rewriting sees all of a pod's traffic with no help from br_netfilter.
func PodNetworkConfig(n NodeLayout, node plan.Node) string {
	return fmt.Sprintf(`{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {
    "type": "host-local", "dataDir": %q, "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}
`, n.Volatile()+"/ipam", node.PodSubnet)
}

// KubeletConfig is a node's KubeletConfiguration.
func KubeletConfig(l Layout, p plan.Plan, node plan.Node) string {
	n := l.Node(node.Name)
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %q}}
authorization: {mode: Webhook}
tlsCertFile: %q
tlsPrivateKeyFile: %q
cgroupDriver: cgroupfs
cgroupRoot: %q
enforceNodeAllocatable: []
failSwapOn: false
failCgroupV1: false
clusterDNS: [%q]
clusterDomain: cluster.local
containerRuntimeEndpoint: %q
resolvConf: ""
volumePluginDir: %q
podLogsDir: %q
# a lost node is found by its lease; the status itself is only news when it changes
nodeLeaseDurationSeconds: 10
nodeStatusUpdateFrequency: 2s
nodeStatusReportFrequency: 5m
syncFrequency: 10s
# images are loaded by hand: none may ever be thrown away to make room
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, imagefs.available: 1%%}
evictionPressureTransitionPeriod: 10s
serializeImagePulls: false
`, l.Cert("ca"), l.Cert(node.Name), l.Key(node.Name), node.Cgroup, p.Gateway(), "unix://"+n.Socket(), n.KubeletRoot()+"/plugins-exec", n.PodLogs())
}
