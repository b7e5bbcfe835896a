package image

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Image is what an archive says of one image in it.
type Image struct {
	// ID is the digest of the image's configuration, "sha256:…": the same however the layers are packed.
	ID         string
	References []string
}

// configLimit bounds what is read into memory when looking for configurations.
const configLimit = 1 << 20

// ReadArchive returns the images of a docker archive, plain or gzipped, without unpacking it.
func ReadArchive(path string) ([]Image, error) {
	source, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	reader, err := plain(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	images, err := readImages(tar.NewReader(reader))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return images, nil
}

// plain undoes gzip. An uncompressed file is handed on as a file, so that tar can seek over the layers.
func plain(source *os.File) (io.Reader, error) {
	magic := make([]byte, 2)
	if _, err := io.ReadFull(source, magic); err != nil {
		return nil, errors.New("the file is too short for an archive")
	}
	if _, err := source.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if magic[0] == 0x1f && magic[1] == 0x8b {
		return gzip.NewReader(bufio.NewReader(source))
	}
	return source, nil
}

func readImages(archive *tar.Reader) ([]Image, error) {
	small := map[string][]byte{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("not a tar archive: %w", err)
		}
		if header.Typeflag != tar.TypeReg || header.Size > configLimit {
			continue
		}
		body, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		small[header.Name] = body
	}
	return parseImages(small)
}

func parseImages(files map[string][]byte) ([]Image, error) {
	manifest, found := files["manifest.json"]
	if !found {
		return nil, errors.New("no manifest.json: write the image as a docker archive, for example `buildah push IMAGE docker-archive:FILE:NAME:TAG`")
	}
	var entries []manifestEntry
	if err := json.Unmarshal(manifest, &entries); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	images := make([]Image, 0, len(entries))
	for _, entry := range entries {
		config, found := files[entry.Config]
		if !found {
			return nil, fmt.Errorf("manifest.json names the configuration %s, which is not in the archive", entry.Config)
		}
		if len(entry.RepoTags) == 0 {
			return nil, errors.New("an image in the archive has no name: give it one, for example localhost/NAME:TAG")
		}
		img := Image{ID: "sha256:" + digest(config)}
		for _, tag := range entry.RepoTags {
			img.References = append(img.References, Normalise(tag))
		}
		images = append(images, img)
	}
	return images, nil
}

// Normalise spells a reference as containerd keeps it: a name without a registry is one of Docker's own.
func Normalise(reference string) string {
	first, _, nested := strings.Cut(reference, "/")
	if !nested {
		return "docker.io/library/" + reference
	}
	if first == "localhost" || strings.ContainsAny(first, ".:") {
		return reference
	}
	return "docker.io/" + reference
}
