// Package host touches the machine: network devices, cgroups, mounts. Every function may be run twice.
// It knows plans and paths, not what Kubernetes is.
package host

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// run runs a program and returns what it printed; a failure carries the program's own words.
func run(argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "PATH="+SearchPath, "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// runAll runs programs in order and stops at the first failure.
func runAll(commands ...[]string) error {
	for _, argv := range commands {
		if _, err := run(argv...); err != nil {
			return err
		}
	}
	return nil
}

// words splits a formatted command line; no argument of ours holds a space.
func words(format string, values ...any) []string {
	return strings.Fields(fmt.Sprintf(format, values...))
}

// SearchPath is where the machine's programs are; the caller's own PATH may lack sbin.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
