package cluster

import (
	"os"
	"path/filepath"
	"strings"

	"alineo.dev/devcluster/internal/render"
)

// Where the programs of a node put files of their own accord, outside the cluster's directory.
const (
	containerLinks = "/var/log/containers"
	networkResults = "/var/lib/cni/results"
)

// deleteShimSockets removes the sockets of the containers' keepers, which were killed and could not.
func deleteShimSockets(n render.NodeLayout) {
	addresses, _ := filepath.Glob(filepath.Join(n.ContainerdState(), "io.containerd.runtime.v2.task", "*", "*", "address"))
	for _, path := range addresses {
		body, err := os.ReadFile(path)
		if socket, found := strings.CutPrefix(strings.TrimSpace(string(body)), "unix://"); err == nil && found {
			_ = os.Remove(socket) // a stray socket does no harm
		}
	}
}

// deleteLeftovers removes what the kubelets and the network plugins wrote elsewhere for this cluster: links to
// its logs, and results of attaching its pods, which are named after the pods' sandboxes.
func deleteLeftovers(layout render.Layout) {
	links, _ := filepath.Glob(containerLinks + "/*.log")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, layout.Dir+"/") {
			_ = os.Remove(link)
		}
	}
	sandboxes, _ := filepath.Glob(filepath.Join(layout.Dir, "nodes", "*", "containerd", "io.containerd.grpc.v1.cri", "sandboxes", "*"))
	for _, sandbox := range sandboxes {
		results, _ := filepath.Glob(networkResults + "/*-" + filepath.Base(sandbox) + "-*")
		for _, result := range results {
			_ = os.Remove(result)
		}
	}
}
