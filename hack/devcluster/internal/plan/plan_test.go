package plan

import (
	"net/netip"
	"strings"
	"testing"
)

func mustNew(t *testing.T, name string, index int) Plan {
	t.Helper()
	p, err := New(name, index)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPartsLieInTheNetworkAndApart(t *testing.T) {
	for index := range Indexes {
		p := mustNew(t, "a", index)
		parts := []netip.Prefix{p.NodeSubnet(), p.ServiceSubnet(), p.PodNetwork()}
		for i, part := range parts {
			if !p.Network().Overlaps(part) || part.Bits() < p.Network().Bits() {
				t.Errorf("%s is not in %s", part, p.Network())
			}
			for _, other := range parts[i+1:] {
				if part.Overlaps(other) {
					t.Errorf("%s overlaps %s", part, other)
				}
			}
		}
		for _, node := range p.Nodes {
			if !p.NodeSubnet().Contains(node.Address) || !p.PodNetwork().Overlaps(node.PodSubnet) {
				t.Errorf("node %s: %s, pods %s", node.Name, node.Address, node.PodSubnet)
			}
		}
		if p.Nodes[0].PodSubnet.Overlaps(p.Nodes[1].PodSubnet) {
			t.Error("the nodes share pod addresses")
		}
		if !p.ServiceSubnet().Contains(p.KubernetesService()) || !p.NodeSubnet().Contains(p.Gateway()) {
			t.Error("the API server is outside of its subnets")
		}
	}
}

func TestClustersShareNothing(t *testing.T) {
	seen := map[string]int{}
	for index := range Indexes {
		p := mustNew(t, "c"+string(rune('a'+index%26))+string(rune('a'+index/26)), index)
		things := []string{p.Bridge(), p.BridgeMAC(), p.Network().String()}
		for _, listener := range p.Listeners() {
			things = append(things, listener.String())
		}
		for _, node := range p.Nodes {
			things = append(things, node.Netns, node.Link, node.Cgroup, node.MAC, node.Address.String())
		}
		for _, thing := range things {
			if other, taken := seen[thing]; taken {
				t.Errorf("clusters %d and %d both have %s", other, index, thing)
			}
			seen[thing] = index
		}
	}
}

func TestDeviceNamesFitTheKernel(t *testing.T) {
	p := mustNew(t, strings.Repeat("x", 32), Indexes-1)
	for _, name := range []string{p.Bridge(), p.Nodes[0].Link, p.Nodes[1].Link} {
		if len(name) > 15 {
			t.Errorf("%s is longer than the kernel's 15", name)
		}
	}
}

func TestNames(t *testing.T) {
	for name, valid := range map[string]bool{
		"alineod-3f2a1b": true, "a": true, strings.Repeat("a", 32): true,
		"": false, "-a": false, "a-": false, "A": false, "a/b": false, "../x": false, strings.Repeat("a", 33): false,
	} {
		if _, err := New(name, 0); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := New("a", Indexes); err == nil {
		t.Error("an index beyond the last is taken")
	}
}

func TestFindNamesTheNodes(t *testing.T) {
	_, err := mustNew(t, "a", 0).Find("n3")
	if err == nil || !strings.Contains(err.Error(), "n1 and n2") {
		t.Errorf("got %v", err)
	}
}
