// Package examples holds small programs to start from; its tests run them.
package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/runneltest"
)

// TestPrograms builds both programs and runs one after the other against a server.
func TestPrograms(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 2))
	bin := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		build := exec.Command("go", "build", "-o", bin, "./"+name)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build %s: %v\n%s", name, err, out)
		}
		program := exec.Command(filepath.Join(bin, name), args...)
		program.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+server.Endpoint(),
			"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any")
		out, err := program.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	run("produce")
	const want = "order-17 created\norder-17 paid\norder-17 shipped\n"
	if got := run("consume", "-once"); got != want {
		t.Errorf("consume printed %q, want %q", got, want)
	}
}

// TestReadme checks that the README shows the programs as they are.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"produce", "consume"} {
		program, err := os.ReadFile(filepath.Join(name, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(string(program), "func main() {\n")
		body, _, _ = strings.Cut(body, "\n}\n")
		if !strings.Contains(string(readme), body) {
			t.Errorf("README.md does not hold the body of examples/%s/main.go", name)
		}
	}
}
