package render

import (
	"alineo.dev/devcluster/internal/plan"
)

// Process is one process of the cluster.
type Process struct {
	Name string
	// Netns is the network namespace; empty is the host's.
	Netns string
	Argv  []string
}

// NodeGrace is how long a silent node counts as alive.
const NodeGrace = "16s"

// Database is etcd. Its writes are not flushed to disk one by one: a crash of the whole machine may lose the
// cluster, which is then made anew, and every test runs the faster.
func Database(l Layout, p plan.Plan, kube string) Process {
	client, peer := "https://"+p.Etcd().String(), "http://"+p.EtcdPeer().String()
	return Process{Name: "etcd", Argv: []string{
		kube, "etcd", "--name=" + p.Name, "--data-dir=" + l.Etcd(), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=" + p.Name + "=" + peer,
		"--cert-file=" + l.Cert("etcd"), "--key-file=" + l.Key("etcd"),
		"--client-cert-auth", "--trusted-ca-file=" + l.Cert("etcd-ca"),
		"--auto-compaction-mode=periodic", "--auto-compaction-retention=10m",
	}}
}

// APIServer is kube-apiserver.
func APIServer(l Layout, p plan.Plan, kube string) Process {
	return Process{Name: "kube-apiserver", Argv: []string{
		kube, "kube-apiserver",
		"--etcd-servers=https://" + p.Etcd().String(), "--etcd-cafile=" + l.Cert("etcd-ca"),
		"--etcd-certfile=" + l.Cert("etcd-client"), "--etcd-keyfile=" + l.Key("etcd-client"),
		"--bind-address=" + p.API().Addr().String(), "--advertise-address=" + p.API().Addr().String(),
		"--secure-port=" + port(p.API()), "--service-cluster-ip-range=" + p.ServiceSubnet().String(),
		"--client-ca-file=" + l.Cert("ca"), "--tls-cert-file=" + l.Cert("apiserver"), "--tls-private-key-file=" + l.Key("apiserver"),
		"--service-account-key-file=" + l.PKI() + "/service-accounts.pub",
		"--service-account-signing-key-file=" + l.Key("service-accounts"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--kubelet-certificate-authority=" + l.Cert("ca"),
		"--kubelet-client-certificate=" + l.Cert("kubelet-client"), "--kubelet-client-key=" + l.Key("kubelet-client"),
		"--kubelet-preferred-address-types=InternalIP",
		// The host has no route to ClusterIPs: webhooks and aggregated APIs are reached at their pods.
		"--enable-aggregator-routing=true",
		"--audit-policy-file=" + l.Config("audit-policy.yaml"), "--audit-log-path=" + l.Audit(),
		"--audit-log-maxsize=200", "--audit-log-maxbackup=2", "--v=1",
	}}
}

// ControllerManager is kube-controller-manager. Pod subnets are fixed by the plan, so it hands out none.
func ControllerManager(l Layout, p plan.Plan, kube string) Process {
	return Process{Name: "kube-controller-manager", Argv: []string{
		kube, "kube-controller-manager", "--kubeconfig=" + l.Config("controller-manager.kubeconfig"),
		"--service-account-private-key-file=" + l.Key("service-accounts"), "--root-ca-file=" + l.Cert("ca"),
		"--use-service-account-credentials=true", "--allocate-node-cidrs=false", "--leader-elect=false",
		"--node-monitor-grace-period=" + NodeGrace, "--node-monitor-period=2s",
		"--controllers=*,-bootstrap-signer-controller,-token-cleaner-controller",
		"--bind-address=" + p.Controller().Addr().String(), "--secure-port=" + port(p.Controller()),
	}}
}

// Scheduler is kube-scheduler.
func Scheduler(l Layout, p plan.Plan, kube string) Process {
	return Process{Name: "kube-scheduler", Argv: []string{
		kube, "kube-scheduler", "--kubeconfig=" + l.Config("scheduler.kubeconfig"), "--leader-elect=false",
		"--bind-address=" + p.Scheduler().Addr().String(), "--secure-port=" + port(p.Scheduler()),
	}}
}

// DNS is CoreDNS, on the host: it needs no image and no node.
func DNS(l Layout, kube string) Process {
	return Process{Name: "coredns", Argv: []string{kube, "coredns", "-conf", l.Config("Corefile")}}
}

// Volumes is this program's own loop that readies released PersistentVolumes for the next claim.
func Volumes(l Layout, p plan.Plan, self string) Process {
	return Process{Name: "volumes", Argv: []string{self, "volumes", "--name", p.Name, "--cache", l.Cache()}}
}
