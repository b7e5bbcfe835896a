package image

import (
	"bufio"
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

// Digests returns the target digest by image name. CRI adds a name "sha256:ID" for every image that it knows.
func (s Store) Digests() (map[string]string, error) {
	out, err := s.ctr("images", "ls")
	if err != nil {
		return nil, err
	}
	return parseDigests(out), nil
}

// parseDigests reads the table of `ctr images ls`: REF TYPE DIGEST ….
func parseDigests(table string) map[string]string {
	digests := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(table))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 3 && strings.HasPrefix(fields[2], "sha256:") {
			digests[fields[0]] = fields[2]
		}
	}
	return digests
}

// Holds says whether every image is there under every one of its names.
func Holds(digests map[string]string, images []Image) bool {
	for _, img := range images {
		target, known := digests[img.ID]
		if !known {
			return false
		}
		for _, reference := range img.References {
			if digests[reference] != target {
				return false
			}
		}
	}
	return true
}

// Import loads an archive.
func (s Store) Import(path string) error {
	_, err := s.ctr("images", "import", "--snapshotter", s.Snapshotter, path)
	return err
}

// Superseded lists the bare "sha256:ID" names whose image no longer has a proper name: what an earlier build
// of the same tag left behind.
func Superseded(digests map[string]string) []string {
	named := map[string]bool{}
	for name, digest := range digests {
		if !strings.HasPrefix(name, "sha256:") {
			named[digest] = true
		}
	}
	var names []string
	for name, digest := range digests {
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
