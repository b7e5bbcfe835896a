package cluster

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"alineo.dev/devcluster/internal/render"
)

// Components are the names that Log knows.
func (c *Cluster) Components() []string {
	var names []string
	for _, process := range render.Processes(c.Layout, c.Plan, c.Tools.Kube, c.Tools.Self) {
		names = append(names, process.Name)
	}
	return names
}

// Log returns the last lines of a component's output.
func (c *Cluster) Log(component string, lines int) (string, error) {
	if !slices.Contains(c.Components(), component) {
		return "", fmt.Errorf("no component %q: there are %s", component, strings.Join(c.Components(), ", "))
	}
	if _, err := os.Stat(c.Layout.Log(component)); err != nil {
		return "", fmt.Errorf("%s has not been started: %w", component, err)
	}
	return tail(c.Layout.Log(component), lines), nil
}
