package pki

import (
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

func readCert(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(body)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestWriteAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	server := Leaf{Name: "server", CommonName: "s", Organization: "o", DNSNames: []string{"kubernetes"}, Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.1")}}
	write := func() {
		if err := WriteAll(dir, []Leaf{server}, []Leaf{{Name: "etcd", CommonName: "e"}}); err != nil {
			t.Fatal(err)
		}
	}
	write()
	cert, pool, other := readCert(t, dir+"/server.crt"), x509.NewCertPool(), x509.NewCertPool()
	pool.AddCert(readCert(t, dir+"/ca.crt"))
	other.AddCert(readCert(t, dir+"/etcd-ca.crt"))
	for _, name := range []string{"kubernetes", "10.1.0.1"} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: pool, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: other}); err == nil {
		t.Error("a certificate of the cluster opens the database")
	}
	serial := cert.SerialNumber
	write()
	if readCert(t, dir+"/server.crt").SerialNumber.Cmp(serial) != 0 {
		t.Error("a second run made other certificates")
	}
}
