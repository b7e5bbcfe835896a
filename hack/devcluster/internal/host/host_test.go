package host

import (
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParseRoutes(t *testing.T) {
	table := `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
alineo3	0000C30A	00000000	0001	0	0	0	00FFFFFF	0	0	0
*	0000C30A	00000000	0201	0	0	0	0000FFFF	0	0	0
`
	want := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	if got := parseRoutes(table, "alineo3"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestParseHierarchies(t *testing.T) {
	v1 := `cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
`
	hybrid := parseHierarchies(v1)
	if hybrid.V2 || len(hybrid.Mounts) != 3 || hybrid.Cpuset != "/sys/fs/cgroup/cpuset" || !slices.Contains(hybrid.Controllers, "cpuacct") {
		t.Errorf("version 1: %+v", hybrid)
	}
	unified := parseHierarchies("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
	if !unified.V2 || !slices.Equal(unified.Mounts, []string{"/sys/fs/cgroup"}) {
		t.Errorf("version 2: %+v", unified)
	}
	if none := parseHierarchies("proc /proc proc rw 0 0\n"); len(none.Mounts) != 0 {
		t.Errorf("none: %+v", none)
	}
}

func TestMountPoints(t *testing.T) {
	table := `1 0 0:1 / / rw - ext4 /dev/a rw
2 1 0:2 / /c/one/nodes/n1/a rw - tmpfs tmpfs rw
3 1 0:3 / /c/one/with\040space rw - tmpfs tmpfs rw
4 1 0:4 / /c/one-more/b rw - tmpfs tmpfs rw
`
	want := []string{"/c/one/nodes/n1/a", "/c/one/with space"}
	if got := mountPoints(table, "/c/one"); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func able() Facts {
	return Facts{
		Platform: "linux/amd64", Root: true, Capabilities: ^uint64(0), Hierarchies: Hierarchies{V2: true},
		FreeDisk: 50 * gibibyte, AvailableMemory: 8 * gibibyte, InotifyInstances: 128, LongestPath: "/c/containerd.sock",
	}
}

func TestJudge(t *testing.T) {
	for situation, c := range map[string]struct {
		change func(f *Facts)
		says   []string
	}{
		"able":         {func(*Facts) {}, nil},
		"not Linux":    {func(f *Facts) { f.Platform = "darwin/arm64" }, []string{"darwin/arm64"}},
		"not root":     {func(f *Facts) { f.Root = false }, []string{"as root"}},
		"a capability": {func(f *Facts) { f.Capabilities &^= 1 << CapNetAdmin }, []string{"CAP_NET_ADMIN", "--privileged"}},
		"packages": {
			func(f *Facts) {
				f.MissingPrograms = map[string]string{"runc": "runc", "ctr": "containerd", "containerd": "containerd"}
			},
			[]string{"containerd, ctr, runc", "apt-get install --no-install-recommends containerd runc`"},
		},
		"no cgroups":  {func(f *Facts) { f.CgroupError = errors.New("none") }, []string{"No cgroups"}},
		"half of v1":  {func(f *Facts) { f.Hierarchies = Hierarchies{Controllers: []string{"cpu"}} }, []string{"cpuset", "memory"}},
		"a kernel":    {func(f *Facts) { f.Probes = map[string]error{"bridge devices": errors.New("not supported")} }, []string{"bridge devices", "not supported"}},
		"disk":        {func(f *Facts) { f.FreeDisk = gibibyte }, []string{"1.0 GiB of disk", "ALINEOD_CACHE"}},
		"memory":      {func(f *Facts) { f.AvailableMemory = gibibyte }, []string{"1.0 GiB of memory"}},
		"inotify":     {func(f *Facts) { f.InotifyInstances = 8 }, []string{"max_user_instances"}},
		"a long path": {func(f *Facts) { f.LongestPath = strings.Repeat("x", 120) }, []string{"shorter directory"}},
	} {
		f := able()
		c.change(&f)
		text := strings.Join(Judge(f), "\n")
		if (text == "") != (len(c.says) == 0) {
			t.Errorf("%s: %q", situation, text)
		}
		for _, want := range c.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %q", situation, want, text)
			}
		}
	}
}

func TestParseCapabilities(t *testing.T) {
	if got := parseCapabilities("Name:\tx\nCapEff:\t000001fffeffffff\n"); got&(1<<CapSysResource) != 0 || got&(1<<CapNetAdmin) == 0 {
		t.Errorf("got %x", got)
	}
}
