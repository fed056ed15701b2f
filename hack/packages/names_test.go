package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/waves"
)

// TestNames: files that no compiler checks have the names that programs have as constants.
func TestNames(t *testing.T) {
	requirement := func(name string) string { return "- requirementName: " + name + "\n" }
	settings := fmt.Sprintf("apiVersion: %s\n        kind: %s\n        name: %s\n", waves.SettingsKind.GroupVersion(), waves.SettingsKind.Kind, waves.SettingsName)
	user := fmt.Sprintf("USER %[1]d:%[1]d\n", instance.PostgreSQLUser)
	for file, names := range map[string][]string{
		"compositions/webapp.yaml":            {settings, requirement(build.PodMonitorSchema), requirement(build.RouteSchema)},
		"compositions/databasecluster.yaml":   {settings, requirement(build.PodMonitorSchema)},
		"compositions/ecommerceplatform.yaml": {settings, requirement(build.PodMonitorSchema), requirement(build.RouteSchema)},

		"package/install/escrow.yaml":             {"name: " + backup.EscrowNamespace + "\n", "resourceNames: [" + backup.EscrowNamespace + "]"},
		"package/install/provider-admission.yaml": {"request.namespace == '" + backup.EscrowNamespace + "'", backupv1.GroupVersion.Group + "/"},
		"package/install/servers-admission.yaml":  {"'" + instance.ScopeLabel + "'", "'" + instance.MySQLScopeLabel + "'", "'" + instance.RoleLabel + "'"},

		"package/images/postgresql/Dockerfile": {
			user, fmt.Sprintf("useradd --system --uid %[1]d --gid %[1]d ", instance.PostgreSQLUser), fmt.Sprintf("EXPOSE %d %d\n", instance.PostgreSQLPort, instance.PatroniPort),
			fmt.Sprintf("install -d -o %[1]d -g %[1]d -m 2775 %s;", instance.PostgreSQLUser, instance.SocketDir), instance.PatroniDir + " ",
			"COPY instance " + instance.Program + "\n", "exec " + instance.Program + " " + instance.CommandRewind + " ",
			`ENTRYPOINT ["instance", "` + instance.CommandStart + `"]`, `CMD ["` + instance.PatroniDir + "/" + instance.PatroniFile + `"]`,
		},
		"package/images/mysql/Dockerfile": {
			fmt.Sprintf("USER %[1]d:%[1]d\n", instance.MySQLUser), fmt.Sprintf("EXPOSE %d %d\n", instance.MySQLPort, instance.MySQLSupervisorPort),
			fmt.Sprintf("install -d -o %[1]d -g %[1]d -m 2770 %s;", instance.MySQLUser, instance.MySQLRunDir), "COPY instance " + instance.Program + "\n", "COPY backup " + backup.Program + "\n",
			`ENTRYPOINT ["instance", "` + instance.CommandMySQL + `"]`,
		},
		"package/images/backup/postgresql.Dockerfile": {user, fmt.Sprintf("EXPOSE %d\n", pgbackrest.Port)},
	} {
		content, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !strings.Contains(string(content), name) {
				t.Errorf("%s does not contain %q", file, name)
			}
		}
	}
}

// key matches labels and annotations of Storeplane's own domains.
var key = regexp.MustCompile(`\b(apps|backup|config|platform|storeplane)\.example\.com/[a-z-]{3,}`)

// TestKeys: manifests use no label and no annotation that no program knows.
func TestKeys(t *testing.T) {
	known := []string{
		backupv1.BackupLabel, backupv1.RestoreLabel, backupv1.RunNowAnnotation, backupv1.VerifyNowAnnotation,
		configv1.AppConfigLabel, configv1.AllowAnnotation, compose.AllowAdoptionAnnotation, instance.ScopeLabel, instance.MySQLScopeLabel, instance.RoleLabel,
		// Only manifests read these, on namespaces.
		"storeplane.example.com/environment", "storeplane.example.com/allow-deletion",
	}
	used := map[string]bool{}
	for _, folder := range []string{"package", "compositions"} {
		err := filepath.WalkDir("../../"+folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") {
				return err
			}
			content, err := os.ReadFile(path)
			for _, found := range key.FindAllString(string(content), -1) {
				used[found] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(known)), slices.Sorted(maps.Keys(used))); diff != "" {
		t.Errorf("-labels and annotations of programs, +of manifests:\n%s", diff)
	}
}
