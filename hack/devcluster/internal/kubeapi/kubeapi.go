// Package kubeapi speaks to the cluster's API server with the standard library alone, so that the program
// compiles in seconds. It knows the few objects that a cluster needs before anyone can use it.
package kubeapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// Client is an administrator's connection to one API server.
type Client struct {
	base string
	http *http.Client
}

// New returns a client that uses the administrator's certificate in the directory pki.
func New(server netip.AddrPort, pki string) (*Client, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key"))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	// No Proxy: the server is on this machine whatever the environment says.
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS12,
	}}
	return &Client{base: "https://" + server.String(), http: &http.Client{Transport: transport, Timeout: 10 * time.Second}}, nil
}

// StatusError is an answer other than success.
type StatusError struct {
	Code    int
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("API server answers %d: %s", e.Code, e.Message)
}

// Do sends one request; in and out may be nil. A body is JSON.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		encoded, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "alineod-devcluster")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return &StatusError{Code: response.StatusCode, Message: string(bytes.TrimSpace(answer))}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

// Ready says whether the API server takes requests.
func (c *Client) Ready(ctx context.Context) error {
	return c.Do(ctx, http.MethodGet, "/readyz", nil, nil)
}

// CreateIfAbsent creates an object and is content if it is there.
func (c *Client) CreateIfAbsent(ctx context.Context, collection string, object any) error {
	err := c.Do(ctx, http.MethodPost, collection, object, nil)
	if status, ok := err.(*StatusError); ok && status.Code == http.StatusConflict {
		return nil
	}
	return err
}

// Delete deletes an object and is content if it is gone.
func (c *Client) Delete(ctx context.Context, path string) error {
	err := c.Do(ctx, http.MethodDelete, path, nil, nil)
	if status, ok := err.(*StatusError); ok && status.Code == http.StatusNotFound {
		return nil
	}
	return err
}
