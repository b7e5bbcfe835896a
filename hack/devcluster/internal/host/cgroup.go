package host

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Hierarchies are the cgroup mounts of a machine: many on a version 1 host, one on a version 2 host.
type Hierarchies struct {
	V2     bool
	Mounts []string
	// Cpuset is the version 1 hierarchy whose new groups start empty and must be given processors and memory.
	Cpuset string
	// Controllers are the version 1 controllers that are mounted.
	Controllers []string
}

// neededV2 is what the kubelet wants switched on for its group.
var neededV2 = []string{"cpu", "cpuset", "memory", "pids"}

// NeededV1 is what the kubelet and runc want mounted on a version 1 host.
var NeededV1 = []string{"cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids"}

// ReadHierarchies reads what the machine has.
func ReadHierarchies() (Hierarchies, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return Hierarchies{}, err
	}
	h := parseHierarchies(string(mounts))
	if len(h.Mounts) == 0 {
		return h, errors.New("no cgroup file system is mounted under /sys/fs/cgroup")
	}
	return h, nil
}

// parseHierarchies reads /proc/mounts. On a hybrid host the version 2 tree at .../unified carries no
// controllers, so any mounted version 1 controller makes it a version 1 host.
func parseHierarchies(mounts string) Hierarchies {
	var h Hierarchies
	var unified []string
	lines := bufio.NewScanner(strings.NewReader(mounts))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[1], "/sys/fs/cgroup") {
			continue
		}
		switch fields[2] {
		case "cgroup":
			h.addV1(fields[1], strings.Split(fields[3], ","))
		case "cgroup2":
			unified = append(unified, fields[1])
		}
	}
	if len(h.Mounts) == 0 && len(unified) > 0 {
		return Hierarchies{V2: true, Mounts: unified[:1]}
	}
	return h
}

func (h *Hierarchies) addV1(mount string, options []string) {
	h.Mounts = append(h.Mounts, mount)
	for _, controller := range NeededV1 {
		if slices.Contains(options, controller) {
			h.Controllers = append(h.Controllers, controller)
		}
	}
	if slices.Contains(options, "cpuset") {
		h.Cpuset = mount
	}
}

// ApplyCgroup makes a group in every hierarchy, ready for the kubelet to make its own below.
func (h Hierarchies) ApplyCgroup(name string) error {
	if h.V2 {
		if err := h.enableControllers(); err != nil {
			return err
		}
	}
	for _, mount := range h.Mounts {
		if err := os.Mkdir(mount+name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if h.Cpuset == "" {
		return nil
	}
	return fillCpuset(h.Cpuset, h.Cpuset+name)
}

func (h Hierarchies) enableControllers() error {
	control := filepath.Join(h.Mounts[0], "cgroup.subtree_control")
	for _, controller := range neededV2 {
		if err := os.WriteFile(control, []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("switch on the %s controller in %s: %w; in a container of another engine this needs the host's cgroup namespace (--cgroupns=host)", controller, control, err)
		}
	}
	return nil
}

// fillCpuset copies processors and memory nodes down: a fresh version 1 cpuset has none and takes no process.
func fillCpuset(from, to string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, file), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// DeleteCgroup removes a group with everything below it; its processes must be gone.
func (h Hierarchies) DeleteCgroup(name string) {
	for _, mount := range h.Mounts {
		groups := below(mount + name)
		slices.Reverse(groups)
		for _, group := range groups {
			_ = os.Remove(group) // rmdir; what still has a process stays and does no harm
		}
	}
}

// Processes returns the numbers of all processes in a group and below it.
func (h Hierarchies) Processes(name string) []int {
	seen := map[int]bool{}
	for _, mount := range h.Mounts {
		for _, group := range below(mount + name) {
			for _, pid := range readNumbers(filepath.Join(group, "cgroup.procs")) {
				seen[pid] = true
			}
		}
	}
	pids := make([]int, 0, len(seen))
	for pid := range seen {
		pids = append(pids, pid)
	}
	return pids
}

// below lists a group and all groups under it, parents first.
func below(root string) []string {
	var groups []string
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		return nil // a group that vanishes while we walk is what we want
	})
	return groups
}

func readNumbers(path string) []int {
	body, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var numbers []int
	for _, field := range strings.Fields(string(body)) {
		if number, err := strconv.Atoi(field); err == nil {
			numbers = append(numbers, number)
		}
	}
	return numbers
}
