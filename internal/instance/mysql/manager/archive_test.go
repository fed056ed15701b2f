package manager

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
)

func TestArchiveOf(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := began.Add(time.Minute)
	cases := map[string]struct {
		reason string
		report string
		now    time.Time
		want   *instance.Archive
	}{
		"New":      {reason: "The pod may still have to start.", now: began.Add(time.Minute)},
		"Never":    {reason: "It does not start.", now: began.Add(12 * time.Minute), want: &instance.Archive{Failing: silent}},
		"Reported": {reason: "It has reported.", report: `{"recoverable": "2026-01-01T00:01:00Z"}`, now: began.Add(6 * time.Minute), want: &instance.Archive{Recoverable: &at}},
		"Silent":   {reason: "It was evicted.", report: `{"recoverable": "2026-01-01T00:01:00Z"}`, now: began.Add(13 * time.Minute), want: &instance.Archive{Recoverable: &at, Failing: silent, Since: &at}},
		"Before":   {reason: "A new primary has not waited for it yet.", report: `{"recoverable": "2025-12-31T00:01:00Z"}`, now: began.Add(time.Minute), want: &instance.Archive{Recoverable: new(time.Date(2025, 12, 31, 0, 1, 0, 0, time.UTC))}},
		"Failing":  {reason: "It has said why itself.", report: `{"recoverable": "2026-01-01T00:01:00Z", "failing": "the store is away"}`, now: began.Add(time.Hour), want: &instance.Archive{Recoverable: &at, Failing: "the store is away"}},
		"Broken":   {reason: "What cannot be read is no report.", report: `{`, now: began.Add(time.Minute)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reports := &corev1.ConfigMap{Data: map[string]string{instance.ArchiveKey: tc.report}}
			if diff := cmp.Diff(tc.want, archiveOf(reports, began, tc.now)); diff != "" {
				t.Errorf("%s\narchiveOf(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if got := archiveOf(nil, began, began.Add(time.Minute)); got != nil {
		t.Errorf("without a ConfigMap: want nothing, got %+v", got)
	}
}
