package host

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// UnmountBelow unmounts everything under a directory, innermost first. It fails if anything stays: whoever
// removes the directory next would remove through the mount.
func UnmountBelow(dir string) error {
	points, err := readMountPoints(dir)
	if err != nil {
		return err
	}
	slices.Reverse(points)
	for _, point := range points {
		// Detached: a directory that someone's shell stands in must not keep a dead cluster alive.
		_ = syscall.Unmount(point, syscall.MNT_DETACH) // what could not be unmounted is found below
	}
	left, err := readMountPoints(dir)
	if err == nil && len(left) > 0 {
		return fmt.Errorf("%s is still mounted: unmount it by hand and try again", left[0])
	}
	return err
}

func readMountPoints(dir string) ([]string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return mountPoints(string(table), dir), nil
}

// mountPoints lists the mount points under dir in the order they were mounted.
func mountPoints(mountinfo, dir string) []string {
	var points []string
	lines := bufio.NewScanner(strings.NewReader(mountinfo))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		point := unescape.Replace(fields[4])
		if strings.HasPrefix(point, dir+"/") {
			points = append(points, point)
		}
	}
	return points
}

// unescape undoes the kernel's octal escapes in mount tables.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
