package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

// node is a folder in which the volumes of a pod are mounted, as a node does it.
type node struct {
	root string
	o    *objects
	// others are the objects that are not of the chart: the contents of the Secret or ConfigMap
	// with a name.
	others map[string]map[string]string
	writes int
}

// mount lays out all volumes under the root.
func (n *node) mount(t *testing.T) {
	t.Helper()
	for _, m := range n.o.container().VolumeMounts {
		n.write(t, m.Name)
	}
}

// write writes a volume. A second time it changes the files as a node does: a new folder, to
// which the link that all files go through is moved at once.
func (n *node) write(t *testing.T, name string) {
	t.Helper()
	dir, volume := n.find(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	data, mode := n.contents(volume)
	if data == nil {
		return
	}
	n.writes++
	fresh := "..2026_11_27_" + strings.Repeat("1", n.writes)
	if err := os.Mkdir(filepath.Join(dir, fresh), 0o755); err != nil {
		t.Fatal(err)
	}
	for key, text := range data {
		file := filepath.Join(dir, fresh, key)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		err := os.Symlink(filepath.Join("..data", key), filepath.Join(dir, key))
		if err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	old, _ := os.Readlink(filepath.Join(dir, "..data")) // none before the first write
	if err := os.Symlink(fresh, filepath.Join(dir, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if old != "" {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			t.Fatal(err)
		}
	}
}

// find returns where a volume is mounted, and the volume.
func (n *node) find(name string) (dir string, volume *core.Volume) {
	for _, m := range n.o.container().VolumeMounts {
		if m.Name == name {
			dir = filepath.Join(n.root, m.MountPath)
		}
	}
	for i := range n.o.deployment.Spec.Template.Spec.Volumes {
		if v := &n.o.deployment.Spec.Template.Spec.Volumes[i]; v.Name == name {
			volume = v
		}
	}
	return dir, volume
}

// contents returns the files of a volume and their mode; nil for one that begins empty.
func (n *node) contents(v *core.Volume) (data map[string]string, mode os.FileMode) {
	switch {
	case v.ConfigMap != nil && n.o.limits != nil:
		return n.o.limits.Data, 0o644
	case v.ConfigMap != nil:
		return n.others[v.ConfigMap.Name], 0o644
	case v.Secret == nil:
		return nil, 0
	}
	all := n.others[v.Secret.SecretName]
	if n.o.tokens != nil && n.o.tokens.Name == v.Secret.SecretName {
		all = map[string]string{}
		for key, value := range n.o.tokens.Data {
			all[key] = string(value)
		}
	}
	data = map[string]string{}
	for _, item := range v.Secret.Items {
		data[item.Path] = all[item.Key]
	}
	return data, os.FileMode(*v.Secret.DefaultMode)
}
