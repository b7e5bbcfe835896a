package host

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"syscall"
)

// UnmountBelow unmounts everything under a directory, innermost first.
func UnmountBelow(dir string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	points := mountPoints(string(table), dir)
	slices.Reverse(points)
	for _, point := range points {
		// Detached: a directory that someone's shell stands in must not keep a dead cluster alive.
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil && err != syscall.EINVAL && err != syscall.ENOENT {
			return &os.PathError{Op: "unmount", Path: point, Err: err}
		}
	}
	return nil
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
