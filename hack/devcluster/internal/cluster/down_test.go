package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"alineo.dev/devcluster/internal/render"
)

const cluster = "cut-off"

// A destroy that is cut off before any of its removals leaves what the next one finds and finishes.
func TestADestroyFinishesAnEarlierOne(t *testing.T) {
	for cut, whole := 1, false; !whole; cut++ {
		cache := t.TempDir()
		layout := fillDirectory(t, cache)
		whole = deleteDirectory(layout, failAt(cut)) == nil
		_, err := readState(layout)
		if left, _ := os.ReadDir(layout.Dir); len(left) > 0 && err != nil {
			t.Fatalf("cut off at removal %d: %v are left and nothing says what of", cut, left)
		}
		if err == nil {
			err = deleteDirectory(layout, os.RemoveAll)
		} else {
			_, err = DeleteRemains(cache, cluster)
		}
		if _, there := os.Stat(layout.Dir); err != nil || !errors.Is(there, os.ErrNotExist) {
			t.Fatalf("cut off at removal %d: the next destroy said %v and left %v", cut, err, there)
		}
	}
}

// What an earlier version left when it was cut off.
func TestRemainsWithoutAState(t *testing.T) {
	cache := t.TempDir()
	layout := fillDirectory(t, cache)
	if err := os.Remove(statePath(layout)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if found, err := DeleteRemains(cache, cluster); found != want || err != nil {
			t.Errorf("found %v, %v", found, err)
		}
	}
	if _, err := os.Stat(layout.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there", layout.Dir)
	}
}

// fillDirectory makes what destroy meets: parts whose names come before the state's and after it.
func fillDirectory(t *testing.T, cache string) render.Layout {
	t.Helper()
	layout := render.NewLayout(cache, cluster)
	for _, path := range []string{layout.Cert("ca"), layout.Key("ca"), layout.Audit(), filepath.Join(layout.Dir, "a-part")} {
		if err := writeFile(path, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeState(layout, State{Name: cluster, Phase: PhaseUp}); err != nil {
		t.Fatal(err)
	}
	return layout
}

// failAt removes until its call of that number.
func failAt(cut int) func(path string) error {
	calls := 0
	return func(path string) error {
		if calls++; calls == cut {
			return errors.New("cut off")
		}
		return os.RemoveAll(path)
	}
}
