package fsck_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/fsck"
)

// serve opens a server on a directory, and returns the served data. It closes it again.
func serve(t testing.TB, fsys vfs.FS, dir string, during func()) ([]string, error) {
	t.Helper()
	s, err := open(t, fsys, config(dir))
	if err != nil {
		return nil, err
	}
	if during != nil {
		during()
	}
	lines, err := client{s}.dump()
	return lines, errors.Join(err, s.Close(t.Context()))
}

// The version of the program that wrote a format made its directories in testdata, and they are
// never made again: "closed" after a clean end, "killed" as a kill leaves it, with frames after its
// snapshot. served.txt holds the data that this version served from either.
func TestOlderFormatsAreRead(t *testing.T) {
	formats, err := filepath.Glob("testdata/format-*")
	if err != nil || len(formats) == 0 {
		t.Fatalf("formats %q, %v", formats, err)
	}
	for _, format := range formats {
		text, err := os.ReadFile(filepath.Join(format, "served.txt"))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		for _, how := range []string{"closed", "killed"} {
			t.Run(filepath.Base(format)+" "+how, func(t *testing.T) {
				checkFormat(t, filepath.ToSlash(filepath.Join(format, how)), want)
			})
		}
	}
}

func checkFormat(t *testing.T, golden string, want []string) {
	disk := vfs.NewMem()
	copyTree(t, vfs.OS{}, golden, disk, "data")
	before := tree(t, disk, "data")
	sound(t, disk)
	if after := tree(t, disk, "data"); !maps.Equal(before, after) {
		t.Error("the check has changed something")
	}
	got, err := serve(t, disk, "data", func() {
		if _, err := fsck.Check(t.Context(), disk, "data"); !errors.Is(err, vfs.ErrLocked) {
			t.Errorf("a check beside a running server: %v", err)
		}
	})
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("served %d lines of %d, %v", len(got), len(want), err)
	}
	if now := string(read(t, disk, "data/FORMAT")); now != "7\n" {
		t.Errorf("FORMAT is %q after a start", now)
	}
	if report := sound(t, disk); report.Format != 7 {
		t.Errorf("format %d after a start", report.Format)
	}
	if got, err := serve(t, disk, "data", nil); err != nil || !slices.Equal(got, want) {
		t.Errorf("served %d lines of %d after another start, %v", len(got), len(want), err)
	}
}

// sound checks a directory, which must be.
func sound(t testing.TB, fsys vfs.FS) *fsck.Report {
	t.Helper()
	report, err := fsck.Check(t.Context(), fsys, "data")
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK {
		t.Fatalf("not sound: %+v", report.Damage)
	}
	if len(report.Foreign) > 0 {
		t.Fatalf("files of the server count as not its own: %v", report.Foreign)
	}
	return report
}
