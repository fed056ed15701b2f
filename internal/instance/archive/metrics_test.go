package archive

import (
	"slices"
	"testing"

	"github.com/storeplane/storeplane/internal/instance/manager/volume"
)

func TestVolumeMetrics(t *testing.T) {
	dir := t.TempDir()
	_, size, err := volume.Usage(dir)
	if err != nil {
		t.Fatal(err)
	}
	families, err := volumeMetrics(dir).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
		if v := f.GetMetric()[0].GetGauge().GetValue(); f.GetName() == "storeplane_repository_volume_bytes" && v != float64(size) || v <= 0 {
			t.Errorf("%s: got %f of a volume of %d", f.GetName(), v, size)
		}
	}
	if want := []string{"storeplane_repository_volume_bytes", "storeplane_repository_volume_used_bytes"}; !slices.Equal(names, want) {
		t.Errorf("want %v, got %v", want, names)
	}
	if families, err = volumeMetrics(dir + "/none").Gather(); err != nil || len(families) > 0 {
		t.Errorf("a volume that is not there: got %v, %v", families, err)
	}
}
