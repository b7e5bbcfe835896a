package render

import (
	"encoding/base64"
	"fmt"
	"net/netip"

	"alineo.dev/devcluster/internal/plan"
)

// AuditPolicy records who wrote what: every write by anyone, without bodies, once it is answered. Reads are left out.
const AuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    verbs: [create, update, patch, delete, deletecollection]
  - level: None
`

// Corefile is the configuration of the DNS server: the cluster's names and nothing beyond.
func Corefile(l Layout, p plan.Plan) string {
	return fmt.Sprintf(`.:%d {
  bind %s
  errors
  ready %s
  kubernetes cluster.local in-addr.arpa {
    kubeconfig %s %s
    ttl 5
  }
  cache 5
}
`, p.DNS().Port(), p.DNS().Addr(), p.DNSReady(), l.Config("coredns.kubeconfig"), p.Name)
}

// Credentials are the three PEM files of a kubeconfig.
type Credentials struct{ Authority, Cert, Key []byte }

// Kubeconfig is complete in itself, so that a copy of it works anywhere on the machine. Its context, cluster
// and user are all named as the cluster is.
func Kubeconfig(name string, server netip.AddrPort, c Credentials) string {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: %[1]s, cluster: {server: "https://%[2]s", certificate-authority-data: %[3]s}}]
users: [{name: %[1]s, user: {client-certificate-data: %[4]s, client-key-data: %[5]s}}]
contexts: [{name: %[1]s, context: {cluster: %[1]s, user: %[1]s}}]
current-context: %[1]s
`, name, server, encode(c.Authority), encode(c.Cert), encode(c.Key))
}
