package image

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
)

// Store is the image store of one node's containerd.
type Store struct {
	Socket      string
	Snapshotter string
}

// Responds says whether containerd answers.
func (s Store) Responds() bool {
	_, err := s.ctr("version")
	return err == nil
}

// Targets returns the digest that each image name stands for.
func (s Store) Targets() (map[string]string, error) {
	out, err := s.ctr("images", "ls")
	if err != nil {
		return nil, err
	}
	return parseTargets(out), nil
}

// parseTargets reads the table of `ctr images ls`: REF TYPE DIGEST ….
func parseTargets(table string) map[string]string {
	targets := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(table))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 3 && strings.HasPrefix(fields[2], "sha256:") {
			targets[fields[0]] = fields[2]
		}
	}
	return targets
}

// Holds says whether every image is there under every one of its names.
func (s Store) Holds(images []Image) (bool, error) {
	targets, err := s.Targets()
	if err != nil {
		return false, err
	}
	for _, img := range images {
		for _, reference := range img.References {
			target, known := targets[reference]
			if !known || s.identity(target) != img.ID {
				return false, nil
			}
		}
	}
	return true, nil
}

// identity is the digest of the configuration in a manifest; empty when it is not a manifest that we can read.
func (s Store) identity(manifest string) string {
	out, err := s.ctr("content", "get", manifest)
	if err != nil {
		return ""
	}
	return parseIdentity(out)
}

func parseIdentity(manifest string) string {
	var parsed struct {
		Config struct {
			Digest string `json:"digest"`
		} `json:"config"`
	}
	if json.Unmarshal([]byte(manifest), &parsed) != nil {
		return ""
	}
	return parsed.Config.Digest
}

// Import loads an archive.
func (s Store) Import(path string) error {
	_, err := s.ctr("images", "import", "--snapshotter", s.Snapshotter, path)
	return err
}

// Superseded lists the bare "sha256:ID" names whose image no longer has a proper name: what an earlier build
// of the same tag left behind. CRI adds such a name for every image that it meets.
func Superseded(targets map[string]string) []string {
	named := map[string]bool{}
	for name, digest := range targets {
		if !strings.HasPrefix(name, "sha256:") {
			named[digest] = true
		}
	}
	var names []string
	for name, digest := range targets {
		if strings.HasPrefix(name, "sha256:") && !named[digest] {
			names = append(names, name)
		}
	}
	return names
}

// Delete forgets images by name. Running containers keep their files: they hold the snapshots themselves.
func (s Store) Delete(names []string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := s.ctr(append([]string{"images", "rm"}, names...)...)
	return err
}

func (s Store) ctr(args ...string) (string, error) {
	cmd := exec.Command("ctr", append([]string{"-a", s.Socket, "-n", "k8s.io", "--connect-timeout", "5s"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
