package host

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

const (
	gibibyte = 1 << 30
	// minimumDisk holds the images of both nodes twice over; minimumMemory is what an idle cluster takes.
	minimumDisk   = 4 * gibibyte
	minimumMemory = 3 * gibibyte / 2
	// maximumSocketPath is the kernel's limit for the path of a socket.
	maximumSocketPath = 107
	minimumInotify    = 64
)

// neededCapabilities are those without which nothing starts.
var neededCapabilities = map[string]uint{
	"CAP_NET_ADMIN": CapNetAdmin, "CAP_SYS_ADMIN": CapSysAdmin, "CAP_SYS_CHROOT": CapSysChroot,
	"CAP_SYS_PTRACE": CapSysPtrace, "CAP_MKNOD": CapMknod,
}

// Judge returns a sentence for each thing that the machine lacks, with what to do about it.
func Judge(f Facts) []string {
	if f.Platform != "linux/amd64" {
		return []string{fmt.Sprintf("This machine is %s: the nodes need linux/amd64.", f.Platform)}
	}
	if !f.Root {
		return []string{"This user is not root: nodes are made of namespaces, mounts and cgroups. Run it as root."}
	}
	if powerless := judgeCapabilities(f); len(powerless) > 0 {
		return powerless // whatever else fails would fail because of that
	}
	return slices.Concat(judgePrograms(f), judgeCgroups(f), judgeProbes(f), judgeRoom(f))
}

func judgeCapabilities(f Facts) []string {
	var missing []string
	for name, number := range neededCapabilities {
		if f.Capabilities&(1<<number) == 0 {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	sort.Strings(missing)
	return []string{fmt.Sprintf("Root lacks %s here, as in a container without privileges. Use a virtual machine, or a container started with --privileged.", strings.Join(missing, ", "))}
}

func judgePrograms(f Facts) []string {
	if len(f.MissingPrograms) == 0 {
		return nil
	}
	var names, packages []string
	for name, pkg := range f.MissingPrograms {
		names = append(names, name)
		if !slices.Contains(packages, pkg) {
			packages = append(packages, pkg)
		}
	}
	sort.Strings(names)
	sort.Strings(packages)
	return []string{fmt.Sprintf("Not installed: %s. Run `apt-get install --no-install-recommends %s`.", strings.Join(names, ", "), strings.Join(packages, " "))}
}

func judgeCgroups(f Facts) []string {
	if f.CgroupError != nil {
		return []string{fmt.Sprintf("No cgroups: %v. Mount them, as every Linux distribution does at boot.", f.CgroupError)}
	}
	if f.Hierarchies.V2 {
		return nil // whether the controllers can be switched on is found by trying
	}
	var missing []string
	for _, controller := range NeededV1 {
		if !slices.Contains(f.Hierarchies.Controllers, controller) {
			missing = append(missing, controller)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("The cgroup controllers %s are not mounted under /sys/fs/cgroup. Mount them, or start the kernel with cgroup version 2.", strings.Join(missing, ", "))}
}

func judgeProbes(f Facts) []string {
	var sentences []string
	for what, err := range f.Probes {
		if err != nil {
			sentences = append(sentences, fmt.Sprintf("The kernel does not give us %s: %v. Load its module or use another kernel.", what, err))
		}
	}
	sort.Strings(sentences)
	return sentences
}

func judgeRoom(f Facts) []string {
	var sentences []string
	if f.FreeDisk < minimumDisk {
		sentences = append(sentences, fmt.Sprintf("Only %.1f GiB of disk are free for the cache, %d GiB are needed. Free some, or set ALINEOD_CACHE to a directory on a larger disk.", gib(f.FreeDisk), minimumDisk/gibibyte))
	}
	if f.AvailableMemory < minimumMemory {
		sentences = append(sentences, fmt.Sprintf("Only %.1f GiB of memory are available, %.1f GiB are needed.", gib(f.AvailableMemory), gib(minimumMemory)))
	}
	if f.InotifyInstances < minimumInotify {
		sentences = append(sentences, fmt.Sprintf("fs.inotify.max_user_instances is %d, at least %d are needed. Run `sysctl -w fs.inotify.max_user_instances=512`.", f.InotifyInstances, minimumInotify))
	}
	if len(f.LongestPath) > maximumSocketPath {
		sentences = append(sentences, fmt.Sprintf("The path %s is longer than a socket's may be (%d). Set ALINEOD_CACHE to a shorter directory.", f.LongestPath, maximumSocketPath))
	}
	return sentences
}

func gib(bytes uint64) float64 { return float64(bytes) / gibibyte }
