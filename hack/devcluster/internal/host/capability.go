package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Capabilities by their number in linux/capability.h.
const (
	CapNetAdmin    = 12
	CapSysChroot   = 18
	CapSysPtrace   = 19
	CapSysAdmin    = 21
	CapSysResource = 24
	CapMknod       = 27
)

// HasCapability says whether this process may use a capability.
func HasCapability(number uint) bool {
	status, err := os.ReadFile("/proc/self/status")
	return err == nil && parseCapabilities(string(status))&(1<<number) != 0
}

func parseCapabilities(status string) uint64 {
	for line := range strings.Lines(status) {
		if value, found := strings.CutPrefix(line, "CapEff:"); found {
			bits, _ := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return bits
		}
	}
	return 0
}

// CanOverlay says whether the file system of dir can carry overlays: one that is itself an overlay cannot.
func CanOverlay(dir string) bool {
	probe, err := os.MkdirTemp(dir, ".overlay-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(probe)
	options := make([]string, 0, 3)
	for _, part := range []string{"lower", "upper", "work"} {
		path := filepath.Join(probe, part)
		if err := os.Mkdir(path, 0o755); err != nil {
			return false
		}
		options = append(options, part+"dir="+path)
	}
	target := filepath.Join(probe, "merged")
	if err := os.Mkdir(target, 0o755); err != nil {
		return false
	}
	if err := syscall.Mount("overlay", target, "overlay", 0, strings.Join(options, ",")); err != nil {
		return false
	}
	return syscall.Unmount(target, 0) == nil
}
