// Package image writes and reads docker archives and puts them into a node's containerd.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"time"
)

// Pause is the reference under which the nodes find the image that holds a pod's namespaces.
const Pause = "localhost/alineod/pause:1"

// manifestEntry is one image of a docker archive's manifest.json.
type manifestEntry struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

type imageConfig struct {
	Architecture string          `json:"architecture"`
	OS           string          `json:"os"`
	Created      time.Time       `json:"created"`
	Config       containerConfig `json:"config"`
	RootFS       rootFS          `json:"rootfs"`
}

type containerConfig struct {
	Entrypoint []string `json:"Entrypoint"`
	User       string   `json:"User"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type file struct {
	name string
	mode int64
	body []byte
}

// WriteArchive writes a docker archive at path with one image that holds one static program and runs it as
// nobody. The same program gives the same bytes, so the image keeps its digest.
func WriteArchive(path, reference, program string) error {
	body, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	archive, err := buildArchive(reference, body)
	if err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, archive, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func buildArchive(reference string, program []byte) ([]byte, error) {
	layer, err := buildTar([]file{{"program", 0o755, program}})
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(imageConfig{
		Architecture: "amd64", OS: "linux", Created: time.Unix(0, 0).UTC(),
		Config: containerConfig{Entrypoint: []string{"/program"}, User: "65534:65534"},
		RootFS: rootFS{Type: "layers", DiffIDs: []string{"sha256:" + digest(layer)}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]manifestEntry{{
		Config: digest(config) + ".json", RepoTags: []string{reference}, Layers: []string{"layer.tar"},
	}})
	if err != nil {
		return nil, err
	}
	return buildTar([]file{
		{digest(config) + ".json", 0o644, config}, {"layer.tar", 0o644, layer}, {"manifest.json", 0o644, manifest},
	})
}

func buildTar(files []file) ([]byte, error) {
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.body)), ModTime: time.Unix(0, 0)}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := io.Copy(writer, bytes.NewReader(f.body)); err != nil {
			return nil, err
		}
	}
	err := writer.Close()
	return out.Bytes(), err
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
