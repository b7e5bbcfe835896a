package cluster

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
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

// deleteLeftovers removes what the kubelets and the network plugins wrote elsewhere for this cluster.
func deleteLeftovers(layout render.Layout) {
	links, _ := filepath.Glob(containerLinks + "/*.log")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, layout.Dir+"/") {
			_ = os.Remove(link)
		}
	}
	results, _ := filepath.Glob(networkResults + "/pods-*")
	for _, result := range results {
		if body, err := os.ReadFile(result); err == nil && resultOf(body, layout.Dir) {
			_ = os.Remove(result)
		}
	}
}

// resultOf says whether a plugin's kept result is of a network configuration that names the directory.
func resultOf(body []byte, directory string) bool {
	var kept struct {
		Config string `json:"config"`
	}
	if json.Unmarshal(body, &kept) != nil {
		return false
	}
	config, err := base64.StdEncoding.DecodeString(kept.Config)
	return err == nil && bytes.Contains(config, []byte(directory+"/"))
}
