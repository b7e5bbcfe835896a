package render

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"alineo.dev/devcluster/internal/plan"
)

func example(t *testing.T) (Layout, plan.Plan) {
	t.Helper()
	p, err := plan.New("example", 3)
	if err != nil {
		t.Fatal(err)
	}
	return NewLayout("/cache", "example"), p
}

func TestLayoutKnowsItsCache(t *testing.T) {
	if l, _ := example(t); l.Dir != "/cache/clusters/example" || l.Cache() != "/cache" {
		t.Errorf("%s in %s", l.Dir, l.Cache())
	}
}

func TestAuditPolicyKeepsEveryWriteAndNoRead(t *testing.T) {
	for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
		if !strings.Contains(AuditPolicy, verb) {
			t.Errorf("%s is not audited", verb)
		}
	}
	for _, verb := range []string{"get", "list", "watch"} {
		if strings.Contains(AuditPolicy, verb) {
			t.Errorf("%s is audited", verb)
		}
	}
	if !strings.Contains(AuditPolicy, "level: Metadata") || !strings.HasSuffix(AuditPolicy, "- level: None\n") {
		t.Error("writes must be kept without bodies, and the rest be left out last")
	}
}

func TestContainerdConfigFollowsTheMachine(t *testing.T) {
	l, _ := example(t)
	for machine, want := range map[Machine]string{
		{Snapshotter: "overlayfs", MayRaiseOOMScore: true}: "restrict_oom_score_adj = false",
		{Snapshotter: "overlayfs"}:                         "restrict_oom_score_adj = true",
		{Snapshotter: "native"}:                            `snapshotter = "native"`,
	} {
		if got := ContainerdConfig(l.Node("n1"), machine); !strings.Contains(got, want) {
			t.Errorf("%+v: no %s in\n%s", machine, want, got)
		}
	}
}

func TestPodNetworkConfigIsJSONWithTheNodesSubnet(t *testing.T) {
	l, p := example(t)
	text := PodNetworkConfig(l.Node("n2"), p.Nodes[1])
	if !json.Valid([]byte(text)) || !strings.Contains(text, "10.195.130.0/24") {
		t.Error(text)
	}
}

func TestKubeletConfig(t *testing.T) {
	l, p := example(t)
	text := KubeletConfig(l, p, p.Nodes[0])
	for _, want := range []string{
		`cgroupRoot: "/example-n1"`, `clusterDNS: ["10.195.0.1"]`, "failCgroupV1: false",
		`containerRuntimeEndpoint: "unix:///cache/clusters/example/nodes/n1/run/containerd.sock"`,
		"nodefs.available: 1%,",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestKubeconfigIsCompleteInItself(t *testing.T) {
	_, p := example(t)
	text := Kubeconfig(p.Name, p.API(), Credentials{[]byte("A"), []byte("C"), []byte("K")})
	for _, want := range []string{
		"https://10.195.0.1:26443", "current-context: example",
		"client-key-data: " + base64.StdEncoding.EncodeToString([]byte("K")),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestProcessesAreOfThisClusterOnly(t *testing.T) {
	l, p := example(t)
	var names []string
	for _, process := range Processes(l, p, "/bin/kube", "/bin/devcluster") {
		names = append(names, process.Name)
		line := strings.Join(process.Argv, " ")
		if !strings.Contains(line, "example") {
			t.Errorf("%s cannot be told from another cluster's: %s", process.Name, line)
		}
		if strings.Contains(line, "0.0.0.0") || strings.Contains(line, "127.0.0.1") {
			t.Errorf("%s binds an address that clusters share: %s", process.Name, line)
		}
		if inNode := strings.HasSuffix(process.Name, "-n1") || strings.HasSuffix(process.Name, "-n2"); inNode != (process.Netns != "") {
			t.Errorf("%s runs in namespace %q", process.Name, process.Netns)
		}
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(names))); len(unique) != 12 {
		t.Errorf("processes: %v", names)
	}
}
