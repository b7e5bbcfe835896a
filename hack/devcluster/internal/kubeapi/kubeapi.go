// Package kubeapi speaks to the cluster's API server with the standard library alone, so that the program
// compiles in seconds. It knows the few objects that a cluster needs before anyone can use it.
package kubeapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
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

// Ready returns nil when the API server takes requests, else what it still waits for.
func (c *Client) Ready(ctx context.Context) error {
	err := c.Do(ctx, http.MethodGet, "/readyz", nil, nil)
	var status *StatusError
	if errors.As(err, &status) && status.Code == http.StatusInternalServerError {
		return errors.New(summariseReadiness(status.Message))
	}
	return err
}

// summariseReadiness shortens the list of checks, one a line, of which "[-]" marks those that fail.
func summariseReadiness(checks string) string {
	var failing []string
	for line := range strings.Lines(checks) {
		if rest, found := strings.CutPrefix(line, "[-]"); found {
			name, _, _ := strings.Cut(rest, " ")
			failing = append(failing, name)
		}
	}
	if len(failing) == 0 {
		return "it answers, and is not ready"
	}
	return fmt.Sprintf("%s and %d other checks are not ready", failing[0], len(failing)-1)
}

// CreateIfAbsent creates an object and is content if it is there.
func (c *Client) CreateIfAbsent(ctx context.Context, collection string, object any) error {
	err := c.Do(ctx, http.MethodPost, collection, object, nil)
	if answered(err, http.StatusConflict) {
		return nil
	}
	return err
}

// Delete deletes an object and is content if it is gone.
func (c *Client) Delete(ctx context.Context, path string) error {
	err := c.Do(ctx, http.MethodDelete, path, nil, nil)
	if answered(err, http.StatusNotFound) {
		return nil
	}
	return err
}

func answered(err error, code int) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == code
}
