// Package plan decides the names and addresses of a cluster, and nothing else: it reads no file and no
// interface. Everything two clusters on one machine could fight over is derived from one index, so
// clusters with different indexes cannot clash.
package plan

import (
	"fmt"
	"net/netip"
	"regexp"
)

const (
	// firstOctet to firstOctet+Indexes-1 are the second octets of 10.x.0.0/16 that clusters use: high in 10/8,
	// where home routers, container engines and cloud networks seldom are.
	firstOctet = 192
	// Indexes is how many clusters one machine can hold at most.
	Indexes = 32
)

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// Plan is a cluster's names and addresses.
type Plan struct {
	Name  string
	Index int
	Nodes []Node
}

// Node is one simulated machine: a network namespace with an address on the cluster's bridge.
type Node struct {
	Name      string
	Address   netip.Addr
	PodSubnet netip.Prefix
	// Netns is the name under /run/netns.
	Netns string
	// Link is the host's end of the node's network cable; setting it down cuts the node off.
	Link string
	// Cgroup is the node's cgroup, from the root of every hierarchy.
	Cgroup string
	// MAC is fixed, so that neighbours need not learn a new one after a reboot.
	MAC string
}

// New returns the plan of a cluster, or a sentence that says what is wrong with the name or the index.
func New(name string, index int) (Plan, error) {
	if !validName.MatchString(name) {
		return Plan{}, fmt.Errorf("cluster name %q: use 1 to 32 lower-case letters, digits and dashes, starting and ending with a letter or digit", name)
	}
	if index < 0 || index >= Indexes {
		return Plan{}, fmt.Errorf("cluster index %d is not between 0 and %d", index, Indexes-1)
	}
	p := Plan{Name: name, Index: index}
	for number := 1; number <= 2; number++ {
		p.Nodes = append(p.Nodes, p.node(number))
	}
	return p, nil
}

func (p Plan) node(number int) Node {
	name := fmt.Sprintf("n%d", number)
	return Node{
		Name:      name,
		Address:   p.addr(0, byte(10+number)),
		PodSubnet: netip.PrefixFrom(p.addr(byte(128+number), 0), 24),
		Netns:     p.Name + "-" + name,
		Link:      fmt.Sprintf("alineo%d%s", p.Index, name),
		Cgroup:    "/" + p.Name + "-" + name,
		MAC:       fmt.Sprintf("02:a1:10:%02x:00:%02x", p.Index, 10+number),
	}
}

func (p Plan) addr(third, fourth byte) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(firstOctet + p.Index), third, fourth})
}

// Find returns the node of that name.
func (p Plan) Find(name string) (Node, error) {
	for _, n := range p.Nodes {
		if n.Name == name {
			return n, nil
		}
	}
	return Node{}, fmt.Errorf("no node %q; this cluster has n1 and n2", name)
}

// Network is everything the cluster uses.
func (p Plan) Network() netip.Prefix { return netip.PrefixFrom(p.addr(0, 0), 16) }

// NodeSubnet is the bridge's subnet: the host at Gateway and the nodes.
func (p Plan) NodeSubnet() netip.Prefix { return netip.PrefixFrom(p.addr(0, 0), 24) }

// ServiceSubnet is where ClusterIPs come from.
func (p Plan) ServiceSubnet() netip.Prefix { return netip.PrefixFrom(p.addr(64, 0), 18) }

// PodNetwork covers the pod subnets of all nodes.
func (p Plan) PodNetwork() netip.Prefix { return netip.PrefixFrom(p.addr(128, 0), 17) }

// Gateway is the host's address on the bridge: the API server and the DNS server listen there.
func (p Plan) Gateway() netip.Addr { return p.addr(0, 1) }

// KubernetesService is the ClusterIP of the API server.
func (p Plan) KubernetesService() netip.Addr { return p.addr(64, 1) }

// Loopback is where the processes listen that only the host may reach; each cluster has its own address
// of 127.0.0.0/8, so that all can use the same ports.
func (p Plan) Loopback() netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(firstOctet + p.Index), 0, 1})
}

// Bridge is the name of the host's bridge device.
func (p Plan) Bridge() string { return fmt.Sprintf("alineo%d", p.Index) }

// BridgeMAC is the fixed hardware address of the bridge.
func (p Plan) BridgeMAC() string { return fmt.Sprintf("02:a1:10:%02x:00:01", p.Index) }
