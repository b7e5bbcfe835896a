package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sort"

	"alineo.dev/devcluster/internal/host"
	"alineo.dev/devcluster/internal/pki"
	"alineo.dev/devcluster/internal/plan"
	"alineo.dev/devcluster/internal/render"
)

// leaves are the certificates of the cluster's own authority; the names give each its rights in Kubernetes.
func leaves(p plan.Plan) []pki.Leaf {
	all := []pki.Leaf{
		{Name: "admin", CommonName: "admin", Organization: "system:masters"},
		{Name: "kubelet-client", CommonName: "kube-apiserver-kubelet-client", Organization: "system:masters"},
		{Name: "controller-manager", CommonName: "system:kube-controller-manager"},
		{Name: "scheduler", CommonName: "system:kube-scheduler"},
		{Name: "proxy", CommonName: "system:kube-proxy"},
		{Name: "coredns", CommonName: "coredns"},
		{
			Name: "apiserver", CommonName: "kube-apiserver",
			DNSNames:  []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
			Addresses: []netip.Addr{p.KubernetesService(), p.Gateway(), netip.MustParseAddr("127.0.0.1")},
		},
	}
	for _, node := range p.Nodes {
		all = append(all, pki.Leaf{
			Name: node.Name, CommonName: "system:node:" + node.Name, Organization: "system:nodes",
			DNSNames: []string{node.Name}, Addresses: []netip.Addr{node.Address, netip.MustParseAddr("127.0.0.1")},
		})
	}
	return all
}

func databaseLeaves(p plan.Plan) []pki.Leaf {
	return []pki.Leaf{
		{Name: "etcd", CommonName: "etcd", Addresses: []netip.Addr{p.Loopback()}},
		{Name: "etcd-client", CommonName: "kube-apiserver"},
	}
}

// renderFiles returns the content of every configuration file by path, certificates aside.
func (c *Cluster) renderFiles(machine render.Machine) map[string]string {
	files := map[string]string{
		c.Layout.Config("audit-policy.yaml"): render.AuditPolicy,
		c.Layout.Config("Corefile"):          render.Corefile(c.Layout, c.Plan),
	}
	for _, node := range c.Plan.Nodes {
		n := c.Layout.Node(node.Name)
		files[n.Containerd()] = render.ContainerdConfig(n, machine)
		files[n.Kubelet()] = render.KubeletConfig(c.Layout, c.Plan, node)
		files[n.CNI()+"/10-pods.conflist"] = render.PodNetworkConfig(n, node)
	}
	return files
}

// writeFiles writes certificates, configuration and kubeconfigs.
func (c *Cluster) writeFiles(machine render.Machine) error {
	if err := pki.WriteAll(c.Layout.PKI(), leaves(c.Plan), databaseLeaves(c.Plan)); err != nil {
		return err
	}
	for path, content := range c.renderFiles(machine) {
		if err := writeFile(path, []byte(content)); err != nil {
			return err
		}
	}
	users := map[string]string{"admin": c.Layout.Kubeconfig()}
	for _, name := range []string{"controller-manager", "scheduler", "proxy", "coredns", "n1", "n2"} {
		users[name] = c.Layout.Config(name + ".kubeconfig")
	}
	for name, path := range users {
		if err := c.writeKubeconfig(name, path); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) writeKubeconfig(user, path string) error {
	var credentials render.Credentials
	for source, target := range map[string]*[]byte{
		c.Layout.Cert("ca"): &credentials.Authority, c.Layout.Cert(user): &credentials.Cert, c.Layout.Key(user): &credentials.Key,
	} {
		body, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		*target = body
	}
	return writeFile(path, []byte(render.Kubeconfig(c.Plan.Name, c.Plan.API(), credentials)))
}

// build tells what the cluster would be started with now: programs, command lines and configuration.
func (c *Cluster) build(machine render.Machine) (string, error) {
	sum := sha256.New()
	if err := hashFile(sum, c.Tools.Kube); err != nil {
		return "", err
	}
	fmt.Fprintln(sum, host.Scheme(c.Plan))
	files := c.renderFiles(machine)
	paths := make([]string, 0, len(files))
	for path := range files {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for _, path := range paths {
		fmt.Fprintln(sum, path, files[path])
	}
	for _, process := range render.Processes(c.Layout, c.Plan, c.Tools.Kube, "devcluster") {
		fmt.Fprintln(sum, process.Name, process.Netns, process.Argv)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

func hashFile(sum io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(sum, file)
	return err
}
