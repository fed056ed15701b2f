package pgbackrest

import (
	"fmt"
	"strconv"
	"strings"
)

// defaultRetention is in days.
const defaultRetention = 30

// Days returns the days of a retention like 30d, 4w or 12m. Without one it is defaultRetention.
func Days(retention string) (int, error) {
	if retention == "" {
		return defaultRetention, nil
	}
	n, err := strconv.Atoi(retention[:len(retention)-1])
	if err == nil && n > 0 {
		switch {
		case strings.HasSuffix(retention, "d"):
			return n, nil
		case strings.HasSuffix(retention, "w"):
			return 7 * n, nil
		case strings.HasSuffix(retention, "m"):
			return 30 * n, nil
		}
	}
	return 0, fmt.Errorf("cannot read retention %q: it must be like 30d, 4w or 12m", retention)
}
