package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance"
)

// rewound creates an event from a pg_rewind that failed, which package rewind has reported on
// the volume.
func (b *member) rewound(ctx context.Context) {
	file := filepath.Join(b.Volume, instance.RewindStateFile)
	data, err := os.ReadFile(file) //nolint:gosec // the volume is the pod's
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	state := instance.RewindState{}
	if err == nil {
		err = json.Unmarshal(data, &state)
	}
	if err == nil {
		b.Event(ctx, corev1.EventTypeWarning, appsv1.ReasonReplicaReinitializing, fmt.Sprintf("%s copies the primary: %s", b.Pod, state.Message))
	}
	b.Note("read how the server was rewound", err)
	b.Note("forget how the server was rewound", os.Remove(file))
}
