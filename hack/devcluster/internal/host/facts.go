package host

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Facts is what matters of a machine for holding a cluster.
type Facts struct {
	Platform string
	Root     bool
	// Capabilities is the effective set, by bit.
	Capabilities uint64
	// MissingPrograms maps a program or plugin that was not found to the Debian package that has it.
	MissingPrograms map[string]string
	Hierarchies     Hierarchies
	CgroupError     error
	// Probes maps a thing the kernel must do to the failure when it was tried.
	Probes map[string]error
	// FreeDisk and AvailableMemory are in bytes.
	FreeDisk, AvailableMemory uint64
	InotifyInstances          int
	// LongestPath is the longest socket path below the cache.
	LongestPath string
}

// programs that the nodes use, and the Debian packages that bring them.
var programs = map[string]string{
	"containerd": "containerd", "ctr": "containerd", "containerd-shim-runc-v2": "containerd", "runc": "runc",
	"ip": "iproute2", "iptables": "iptables", "conntrack": "conntrack",
	"nsenter": "util-linux", "unshare": "util-linux", "mount": "mount",
}

// PluginDirectory is where Debian keeps the CNI plugins.
const PluginDirectory = "/usr/lib/cni"

var plugins = []string{"ptp", "host-local", "portmap", "loopback"}

// ReadFacts examines the machine; dir is the cache, which is made if it is missing.
func ReadFacts(dir, longestPath string) (Facts, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Facts{}, err
	}
	f := Facts{
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Root: os.Geteuid() == 0, LongestPath: longestPath,
		MissingPrograms: missingPrograms(), Probes: map[string]error{},
	}
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		f.Capabilities = parseCapabilities(string(status))
	}
	f.Hierarchies, f.CgroupError = ReadHierarchies()
	f.FreeDisk = freeDisk(dir)
	f.AvailableMemory = availableMemory()
	f.InotifyInstances = inotifyInstances()
	if f.Root && len(f.MissingPrograms) == 0 {
		f.Probes = probeKernel(f.Hierarchies)
	}
	return f, nil
}

func missingPrograms() map[string]string {
	missing := map[string]string{}
	for program, pkg := range programs {
		if !onPath(program) {
			missing[program] = pkg
		}
	}
	for _, plugin := range plugins {
		if !exists(filepath.Join(PluginDirectory, plugin)) {
			missing["the CNI plugin "+plugin] = "containernetworking-plugins"
		}
	}
	return missing
}

func onPath(program string) bool {
	for _, dir := range filepath.SplitList(SearchPath) {
		if _, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return true
		}
	}
	return false
}

func freeDisk(dir string) uint64 {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0
	}
	return stat.Bavail * uint64(stat.Bsize)
}

func availableMemory() uint64 {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && fields[0] == "MemAvailable:" {
			kibibytes, _ := strconv.ParseUint(fields[1], 10, 64)
			return kibibytes << 10
		}
	}
	return 0
}

func inotifyInstances() int {
	body, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return 0
	}
	number, _ := strconv.Atoi(strings.TrimSpace(string(body)))
	return number
}
