package mysql

import (
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

func TestCloneStatement(t *testing.T) {
	cases := map[string]struct {
		reason string
		conn   engine.Connection
		want   string
	}{
		"Plain": {
			reason: "The connection of a DatabaseCluster.",
			conn:   engine.Connection{User: "storeplane_backup", Password: "secret", Hosts: "Ledger-primary.shop.svc:3306", CA: "/ca.crt"},
			want:   `CLONE INSTANCE FROM 'storeplane_backup'@'ledger-primary.shop.svc':3306 IDENTIFIED BY 'secret' DATA DIRECTORY = '/scratch/copy' REQUIRE SSL`,
		},
		"NoPort": {
			reason: "A connection need not name a port.",
			conn:   engine.Connection{User: "u", Password: "p", Hosts: "db"},
			want:   `CLONE INSTANCE FROM 'u'@'db':3306 IDENTIFIED BY 'p' DATA DIRECTORY = '/scratch/copy' REQUIRE SSL`,
		},
		"Escaped": {
			reason: "Quotes, backslashes and line breaks end no literal.",
			conn:   engine.Connection{User: `o'x`, Password: "a'b\\'c\"d\n\x00;", Hosts: `h'@x:1`, CA: "/ca.crt"},
			want:   `CLONE INSTANCE FROM 'o\'x'@'h\'@x':1 IDENTIFIED BY 'a\'b\\\'c"d\n\0;' DATA DIRECTORY = '/scratch/copy' REQUIRE SSL`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := (&Server{conn: tc.conn}).cloneStatement("/scratch/copy")
			if err != nil || got != tc.want {
				t.Errorf("%s\ncloneStatement(): %v\nwant %s\ngot  %s", tc.reason, err, tc.want, got)
			}
		})
	}
	for _, port := range []string{"3306 REQUIRE NO SSL", "x", "70000"} {
		if got, err := (&Server{conn: engine.Connection{Hosts: "db:" + port}}).cloneStatement("/copy"); backup.ReasonOf(err) != backup.InvalidTask {
			t.Errorf("cloneStatement() with port %q: want reason %s, got %q, %v", port, backup.InvalidTask, got, err)
		}
	}
}

func TestMayClone(t *testing.T) {
	cases := map[string]struct {
		reason string
		grants []string
		want   bool
	}{
		"Granted":  {reason: "Dynamic privileges are on a line of their own.", want: true, grants: []string{"GRANT USAGE ON *.* TO `storeplane_backup`@`%`", "GRANT BACKUP_ADMIN,SHOW_ROUTINE ON *.* TO `storeplane_backup`@`%`"}},
		"Option":   {reason: "It may be granted with the right to grant it.", want: true, grants: []string{"GRANT SHOW_ROUTINE, BACKUP_ADMIN ON *.* TO `a`@`%` WITH GRANT OPTION"}},
		"All":      {reason: "All privileges contain it.", want: true, grants: []string{"GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION"}},
		"Missing":  {reason: "The user of an older release lacks it.", grants: []string{"GRANT SHOW_ROUTINE ON *.* TO `storeplane_backup`@`%`", "GRANT SELECT ON `shop`.* TO `storeplane_backup`@`%`"}},
		"Database": {reason: "All privileges on a database do not contain it.", grants: []string{"GRANT ALL PRIVILEGES ON `BACKUP_ADMIN`.* TO `a`@`%`"}},
		"Similar":  {reason: "Another privilege has a similar name.", grants: []string{"GRANT INNODB_BACKUP_ADMIN_X ON *.* TO `a`@`%`"}},
		"Role":     {reason: "A role may have its name.", grants: []string{"GRANT `BACKUP_ADMIN`@`%` TO `a`@`%`"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := mayEverywhere(tc.grants, clonePrivilege); got != tc.want {
				t.Errorf("%s\nmayEverywhere(): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestCloneFailed: the messages are those of MySQL 9.7.
func TestCloneFailed(t *testing.T) {
	cases := map[string]struct {
		reason  string
		code    uint16
		message string
		want    backup.Reason
		hides   string
	}{
		"Password":    {reason: "The donor refuses the password.", code: 3862, message: "Clone Donor Error: Connect failed: 1045 : Access denied for user 'u'@'10.0.0.1' (using password: YES).", want: backup.SourceDenied},
		"Privilege":   {reason: "The donor refuses to be copied.", code: 3862, message: "Clone Donor Error: 1227 : Access denied; you need (at least one of) the BACKUP_ADMIN privilege(s) for this operation.", want: backup.SourceDenied},
		"Plugin":      {reason: "The donor has no plugin clone.", code: 3862, message: "Clone Donor Error: 1524 : Plugin 'clone' is not loaded.", want: backup.SourceDenied},
		"Unreachable": {reason: "No donor is there.", code: 3862, message: "Clone Donor Error: Connect failed: 2003 : Can't connect to MySQL server on 'db:3306' (111).", want: backup.SourceUnreachable},
		"TLS":         {reason: "The certificate is not of the authority.", code: 3862, message: "Clone Donor Error: Connect failed: 2026 : SSL connection error: error:0A000086:SSL routines::certificate verify failed.", want: backup.SourceUnreachable},
		"Lost":        {reason: "The donor ends.", code: 3862, message: "Clone Donor Error: 1159 : Got timeout reading communication packets.", want: backup.SourceUnreachable},
		"Network":     {reason: "The connection breaks.", code: 1158, message: "Got an error reading communication packets", want: backup.SourceUnreachable},
		"Other":       {reason: "Another error of the donor.", code: 3862, message: "Clone Donor Error: 1105 : Unknown error.", want: backup.ToolFailed},
		"Exists":      {reason: "A number that stands for something else where dumps are restored.", code: 3862, message: "Clone Donor Error: 1050 : Table exists.", want: backup.ToolFailed},
		"Settings":    {reason: "The servers differ.", code: 3868, message: "Clone Configuration innodb_page_size: Donor value: 32768 is different from Recipient value: 16384.", want: backup.ToolFailed},
		"Space":       {reason: "MySQL looks for room before it copies.", code: 3873, message: "Clone estimated database size is 1.00 TB. Available space 1.00 MB is not enough.", want: backup.NoSpace},
		"Full":        {reason: "Or it finds none.", code: 3, message: "Error writing file './shop/a.ibd' (OS errno 28 - No space left on device)", want: backup.NoSpace},
		"Syntax":      {reason: "MySQL repeats a part of the statement.", code: 1064, message: "You have an error in your SQL syntax near ''secret' DATA DIRECTORY'", want: backup.ToolFailed, hides: "secret"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := cloneFailed("db:3306", &mysql.MySQLError{Number: tc.code, Message: tc.message})
			if got := backup.ReasonOf(err); got != tc.want {
				t.Errorf("%s\ncloneFailed(): want reason %s, got %s: %v", tc.reason, tc.want, got, err)
			}
			if !strings.Contains(err.Error(), "db:3306") || tc.hides != "" && strings.Contains(err.Error(), tc.hides) {
				t.Errorf("%s\ncloneFailed(): %v", tc.reason, err)
			}
		})
	}
	if err := cloneFailed("db:3306", nil); err != nil {
		t.Errorf("cloneFailed(nil): %v", err)
	}
}

func TestLeaveOut(t *testing.T) {
	files := map[string]bool{
		"ibdata1": false, "mysql.ibd": false, "undo_001": false, "undo_002": false, "#innodb_redo/#ib_redo7": false,
		"undo_1_trunc.log": false, "#ib_16384_0.dblwr": false, "shop/orders.ibd": false, "shop/auto.cnf": false, "mysql_upgrade_history": false,
		"auto.cnf": true, "ibtmp1": true, "ib_buffer_pool": true, "server-key.pem": true, "mysqld.pid": true, "s.lock": true, "mysqld.sock": true,
	}
	// A database may have any of these names.
	folders := map[string]bool{
		"shop": false, "#innodb_redo": false, "ibtmp_orders": false, "ib_buffer_pool": false, "auto.cnf": false, "a.pid": false,
		"#innodb_temp": true, "#clone": true,
	}
	for isFolder, cases := range map[bool]map[string]bool{false: files, true: folders} {
		for name, want := range cases {
			if got := LeaveOut(name, isFolder); got != want {
				t.Errorf("LeaveOut(%q, %t): want %t, got %t", name, isFolder, want, got)
			}
		}
	}
}
