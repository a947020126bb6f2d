package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain also runs the test binary as the bare server.
func TestMain(m *testing.M) {
	if os.Getenv(bareVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestRun measures a runnel process. The rows are too short for useful figures; the test requires
// that none is missing.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "runnel")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/runnel")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build runnel: %v\n%s", err, out)
	}
	var out strings.Builder
	err := run(t.Context(), []string{
		"-runnel", binary, "-dir", dir, "-tools", filepath.Join(dir, "none"),
		"-seconds", "0.02", "-rounds", "1", "-no-flush", "-only", "synced|ferrokinesis 0",
	}, &out)
	if err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	tables := 0
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "| "+runnelDurable+" |") {
			tables++
			if strings.Contains(line, missing) || strings.Contains(line, " 0 |") {
				t.Error(line)
			}
		}
	}
	if want := 2*len([]via{viaSDK, viaPrepared}) + 1; tables != want {
		t.Errorf("runnel is in %d tables, want %d", tables, want)
	}
	if strings.Count(out.String(), "| "+bareName+" |") != 2 {
		t.Error("the report does not say what the limit is, with each client: not two tables")
	}
	if want := ferroMemory + ", single records: not installed"; !strings.Contains(out.String(), want) {
		t.Error("the report does not say what is not installed")
	}
	if t.Failed() {
		t.Log(out.String())
	}
	left, err := filepath.Glob(filepath.Join(dir, "runnel-bench-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestParse(t *testing.T) {
	t.Setenv("RUNNEL_BENCH_SECONDS", "2.5")
	cfg, err := parse([]string{"-runnel", "main.go"})
	if err != nil || cfg.Row.Seconds() != 2.5 || cfg.Rounds != 3 {
		t.Errorf("%+v, %v", cfg, err)
	}
	for _, wrong := range [][]string{
		{"-seconds", "0"},
		{"-seconds", "61"},
		{"-rounds", "0"},
		{"-only", "("},
		{"-runnel", "none"},
		{"-unknown"},
	} {
		if _, err := parse(append([]string{"-runnel", "main.go"}, wrong...)); err == nil {
			t.Errorf("%v is taken", wrong)
		}
	}
}
