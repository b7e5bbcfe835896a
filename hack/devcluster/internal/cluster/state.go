package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"alineo.dev/devcluster/internal/render"
)

// Phase is how far a cluster has come; it is written before the steps that lead on are taken.
type Phase string

const (
	// PhaseDown has data at most.
	PhaseDown Phase = "down"
	// PhaseStarting may have anything: a start that never ended is found by this.
	PhaseStarting Phase = "starting"
	// PhaseUp has been complete once; processes may have died since.
	PhaseUp Phase = "up"
)

// State is what a cluster's directory says of it.
type State struct {
	Name     string `json:"name"`
	Index    int    `json:"index"`
	Checkout string `json:"checkout"`
	Phase    Phase  `json:"phase"`
	// Boot is the boot of the machine in which it was started.
	Boot string `json:"boot"`
	// Build tells the programs and settings it was started with from others.
	Build string `json:"build"`
}

func statePath(layout render.Layout) string { return filepath.Join(layout.Dir, "cluster.json") }

func readState(layout render.Layout) (State, error) {
	body, err := os.ReadFile(statePath(layout))
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, ErrAbsent
	}
	if err != nil {
		return State{}, err
	}
	var state State
	if err := json.Unmarshal(body, &state); err != nil {
		return State{}, fmt.Errorf("%s: %w; remove the cluster with `devcluster destroy`", statePath(layout), err)
	}
	return state, nil
}

func writeState(layout render.Layout, state State) error {
	body, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(statePath(layout), append(body, '\n'))
}

// writeFile replaces a file in one step, so that a reader sees the old one or the new one.
func writeFile(path string, body []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", body, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// readClaims returns which cluster of the cache owns which index.
func readClaims(cache string) map[int]string {
	claims := map[int]string{}
	entries, err := os.ReadDir(filepath.Join(cache, "clusters"))
	if err != nil {
		return claims
	}
	for _, entry := range entries {
		if state, err := readState(render.NewLayout(cache, entry.Name())); err == nil {
			claims[state.Index] = state.Name
		}
	}
	return claims
}
