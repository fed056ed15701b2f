package build

import (
	"fmt"
	"strings"
	"time"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/compose"
)

// defaultMaintenanceHours is the length of a window that sets none.
const defaultMaintenanceHours = 4

// window is a maintenance window.
type window struct {
	days     map[time.Weekday]bool
	at       time.Duration
	length   time.Duration
	location *time.Location
	text     string
}

// Window returns a maintenance window. The error names the field that is wrong.
func Window(m *appsv1.Maintenance) (compose.Window, error) {
	start, err := time.Parse("15:04", m.Start)
	if err != nil {
		return nil, fmt.Errorf("start must be hours and minutes like 02:30, is %q", m.Start)
	}
	w := &window{days: map[time.Weekday]bool{}, at: time.Duration(start.Hour())*time.Hour + time.Duration(start.Minute())*time.Minute}
	if w.location, err = loadLocation(m.TimeZone); err != nil {
		return nil, err
	}
	hours := int32(defaultMaintenanceHours)
	if m.Hours != nil {
		hours = *m.Hours
	}
	if hours < 1 || hours > 24 {
		return nil, fmt.Errorf("hours must be 1 to 24, is %d", hours)
	}
	w.length = time.Duration(hours) * time.Hour
	var names []string
	for _, d := range m.Days {
		day, ok := weekday(string(d))
		if !ok {
			return nil, fmt.Errorf("days must be names like Saturday, is %q", d)
		}
		w.days[day] = true
		names = append(names, string(d))
	}
	if len(names) == 0 {
		names = []string{"each day"}
	}
	w.text = fmt.Sprintf("%s %s for %d h, %s", strings.Join(names, ", "), m.Start, hours, w.location)
	return w, nil
}

func weekday(name string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if d.String() == name {
			return d, true
		}
	}
	return 0, false
}

// on returns when the window opens on the day that is days after now, and whether it does.
func (w *window) on(now time.Time, days int) (time.Time, bool) {
	day := now.In(w.location).AddDate(0, 0, days)
	if len(w.days) > 0 && !w.days[day.Weekday()] {
		return time.Time{}, false
	}
	// By the wall clock, even on a day of 23 hours.
	return time.Date(day.Year(), day.Month(), day.Day(), 0, int(w.at/time.Minute), 0, 0, w.location), true
}

// Open implements compose.Window. A window that opened yesterday may still be open.
func (w *window) Open(now time.Time) bool {
	for _, days := range []int{0, -1} {
		if from, ok := w.on(now, days); ok && !now.Before(from) && now.Before(from.Add(w.length)) {
			return true
		}
	}
	return false
}

// Next implements compose.Window.
func (w *window) Next(now time.Time) time.Time {
	for days := range 8 {
		if from, ok := w.on(now, days); ok && from.After(now) {
			return from
		}
	}
	return now.AddDate(0, 0, 7)
}

// Length implements compose.Window.
func (w *window) Length() time.Duration { return w.length }

// String implements compose.Window.
func (w *window) String() string { return w.text }
