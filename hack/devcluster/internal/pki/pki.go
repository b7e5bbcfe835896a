// Package pki makes the certificates of a cluster. It knows who needs which names; it knows nothing of
// processes or networks beyond the addresses it is given.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// validity is long because the cluster's directory outlives anyone's memory of it.
const validity = 10 * 365 * 24 * time.Hour

// Leaf is one certificate to make: Organization becomes the Kubernetes group, CommonName the user.
type Leaf struct {
	Name         string
	CommonName   string
	Organization string
	DNSNames     []string
	Addresses    []netip.Addr
}

// Authority signs leaves.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// WriteAll writes two authorities (ca, etcd-ca), their leaves and the service account key pair into dir.
// The directory appears complete or not at all.
func WriteAll(dir string, cluster, etcd []Leaf) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	temporary := dir + ".new"
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return err
	}
	// The database has an authority of its own: else every certificate of the cluster, a kubelet's too, would open it.
	for name, leaves := range map[string][]Leaf{"ca": cluster, "etcd-ca": etcd} {
		if err := writeAuthority(temporary, name, leaves); err != nil {
			return err
		}
	}
	if err := writeServiceAccountKeys(temporary); err != nil {
		return err
	}
	return os.Rename(temporary, dir)
}

func writeAuthority(dir, name string, leaves []Leaf) error {
	authority, err := NewAuthority(name)
	if err != nil {
		return err
	}
	if err := writePair(dir, name, authority.cert.Raw, authority.key); err != nil {
		return err
	}
	for _, leaf := range leaves {
		der, key, err := authority.Issue(leaf)
		if err != nil {
			return fmt.Errorf("certificate of %s: %w", leaf.Name, err)
		}
		if err := writePair(dir, leaf.Name, der, key); err != nil {
			return err
		}
	}
	return nil
}

// NewAuthority makes a self-signed authority.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &Authority{cert: cert, key: key}, err
}

// Issue makes a key and its certificate, in DER, for both ends of a connection.
func (a *Authority) Issue(leaf Leaf) ([]byte, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	subject := pkix.Name{CommonName: leaf.CommonName}
	if leaf.Organization != "" {
		subject.Organization = []string{leaf.Organization}
	}
	template, err := newTemplate(subject)
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = leaf.DNSNames
	for _, address := range leaf.Addresses {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	return der, key, err
}

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
	}, nil
}

func writeServiceAccountKeys(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeKey(filepath.Join(dir, "service-accounts.key"), key); err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, "service-accounts.pub"), "PUBLIC KEY", public)
}

func writePair(dir, name string, der []byte, key *ecdsa.PrivateKey) error {
	if err := writePEM(filepath.Join(dir, name+".crt"), "CERTIFICATE", der); err != nil {
		return err
	}
	return writeKey(filepath.Join(dir, name+".key"), key)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
