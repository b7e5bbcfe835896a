package cluster

import (
	"fmt"
	"strings"

	"alineo.dev/devcluster/internal/host"
	"alineo.dev/devcluster/internal/render"
)

// UnableError says that this machine cannot hold a cluster as it is.
type UnableError struct{ Sentences []string }

func (e *UnableError) Error() string {
	return "this machine cannot hold a cluster:\n  " + strings.Join(e.Sentences, "\n  ")
}

// Examine returns what the machine has, or an UnableError.
func Examine(cache, name string) (host.Facts, error) {
	// containerd adds a suffix for its second socket.
	longest := render.NewLayout(cache, name).Node("n1").Socket() + ".ttrpc"
	facts, err := host.ReadFacts(cache, longest)
	if err != nil {
		return facts, &UnableError{[]string{fmt.Sprintf("The cache cannot be made: %v. Set ALINEOD_CACHE to a directory that can.", err)}}
	}
	if sentences := host.Judge(facts); len(sentences) > 0 {
		return facts, &UnableError{sentences}
	}
	return facts, nil
}

// Describe says in a few lines what the machine offers.
func Describe(facts host.Facts) string {
	groups := "cgroup version 1"
	if facts.Hierarchies.V2 {
		groups = "cgroup version 2 (provided for, but the project has only been run on version 1)"
	}
	return fmt.Sprintf("This machine can hold a cluster: %s, %.0f GiB of memory available, %.0f GiB of disk free.\n",
		groups, float64(facts.AvailableMemory)/(1<<30), float64(facts.FreeDisk)/(1<<30))
}
