package image

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAWrittenArchiveIsReadBack(t *testing.T) {
	dir := t.TempDir()
	program, archive := filepath.Join(dir, "program"), filepath.Join(dir, "image.tar")
	if err := os.WriteFile(program, []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	var identity string
	for range 2 {
		if err := WriteArchive(archive, "localhost/x:1", program); err != nil {
			t.Fatal(err)
		}
		images, err := ReadArchive(archive)
		if err != nil || len(images) != 1 || images[0].References[0] != "localhost/x:1" {
			t.Fatalf("%+v, %v", images, err)
		}
		if identity != "" && images[0].ID != identity {
			t.Error("the same program gives another image")
		}
		identity = images[0].ID
	}
}

func TestBadArchivesAreExplained(t *testing.T) {
	for want, files := range map[string]map[string][]byte{
		"docker archive":  {"index.json": []byte("{}")},
		"manifest.json":   {"manifest.json": []byte("[")},
		"which is not in": {"manifest.json": []byte(`[{"Config":"c","RepoTags":["a:1"]}]`)},
		"has no name":     {"manifest.json": []byte(`[{"Config":"c"}]`), "c": []byte("{}")},
	} {
		if _, err := parseImages(files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	path := filepath.Join(t.TempDir(), "text")
	_ = os.WriteFile(path, []byte("not an archive, but long enough to be looked at as one"), 0o644)
	if _, err := ReadArchive(path); err == nil || !strings.Contains(err.Error(), "not a tar archive") {
		t.Errorf("got %v", err)
	}
}

func TestNormalise(t *testing.T) {
	for given, want := range map[string]string{
		"pause:1": "docker.io/library/pause:1", "team/app:1": "docker.io/team/app:1",
		"localhost/app:1": "localhost/app:1", "host.example/app:1": "host.example/app:1", "host:5000/app:1": "host:5000/app:1",
	} {
		if got := Normalise(given); got != want {
			t.Errorf("%s: %s", given, got)
		}
	}
}

const table = `REF                TYPE                                                 DIGEST     SIZE  PLATFORMS   LABELS
localhost/app:1    application/vnd.docker.distribution.manifest.v2+json sha256:new 1 MiB linux/amd64 -
sha256:idnew       application/vnd.docker.distribution.manifest.v2+json sha256:new 1 MiB linux/amd64 -
sha256:idold       application/vnd.docker.distribution.manifest.v2+json sha256:old 1 MiB linux/amd64 -
`

func TestSupersededAreThoseWithoutAName(t *testing.T) {
	targets := parseTargets(table)
	if targets["localhost/app:1"] != "sha256:new" || len(targets) != 3 {
		t.Errorf("got %v", targets)
	}
	if got := Superseded(targets); !slices.Equal(got, []string{"sha256:idold"}) {
		t.Errorf("got %v", got)
	}
}

func TestParseIdentity(t *testing.T) {
	if got := parseIdentity(`{"config":{"digest":"sha256:abc"}}`); got != "sha256:abc" {
		t.Error(got)
	}
	if got := parseIdentity(`{"manifests":[]}`) + parseIdentity("x"); got != "" {
		t.Error(got)
	}
}
