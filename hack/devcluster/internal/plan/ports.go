package plan

import "net/netip"

// The ports are not the usual ones: a process of another Kubernetes that listens on every address of the
// host would hold the usual ones on our addresses too. DNS has no choice, pods ask on port 53.
const (
	apiPort        = 26443
	etcdPort       = 22379
	etcdPeerPort   = 22380
	controllerPort = 20257
	schedulerPort  = 20259
	dnsReadyPort   = 20181
	dnsPort        = 53
)

// API is where the API server listens.
func (p Plan) API() netip.AddrPort { return netip.AddrPortFrom(p.Gateway(), apiPort) }

// DNS is where pods send their questions.
func (p Plan) DNS() netip.AddrPort { return netip.AddrPortFrom(p.Gateway(), dnsPort) }

// Etcd is where the database serves its client, the API server.
func (p Plan) Etcd() netip.AddrPort { return netip.AddrPortFrom(p.Loopback(), etcdPort) }

// EtcdPeer is where the database would serve other members.
func (p Plan) EtcdPeer() netip.AddrPort { return netip.AddrPortFrom(p.Loopback(), etcdPeerPort) }

// Controller is where the controller manager serves its health.
func (p Plan) Controller() netip.AddrPort { return netip.AddrPortFrom(p.Loopback(), controllerPort) }

// Scheduler is where the scheduler serves its health.
func (p Plan) Scheduler() netip.AddrPort { return netip.AddrPortFrom(p.Loopback(), schedulerPort) }

// DNSReady is where the DNS server says that it has read the cluster's Services.
func (p Plan) DNSReady() netip.AddrPort { return netip.AddrPortFrom(p.Loopback(), dnsReadyPort) }

// Listeners names every address of the host that the cluster's processes bind, to be checked before a start.
func (p Plan) Listeners() map[string]netip.AddrPort {
	return map[string]netip.AddrPort{
		"kube-apiserver":          p.API(),
		"coredns":                 p.DNS(),
		"coredns (ready)":         p.DNSReady(),
		"etcd":                    p.Etcd(),
		"etcd (peers)":            p.EtcdPeer(),
		"kube-controller-manager": p.Controller(),
		"kube-scheduler":          p.Scheduler(),
	}
}
