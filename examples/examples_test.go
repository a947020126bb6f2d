// Package examples holds small programs to start from; its tests run them.
package examples_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/runneltest"
)

// TestPrograms builds the programs and runs one after the other against a server.
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
	if got := run("records", "-once"); got != want {
		t.Errorf("records printed %q, want %q", got, want)
	}
	dir := t.TempDir()
	run("processor", "-once", "-dir", dir)
	run("processor", "-once", "-dir", dir) // goes on behind the last checkpoint
	files, err := filepath.Glob(filepath.Join(dir, "shardId-*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("processor wrote %s: %v", files, err)
	}
	var got string
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got += string(text)
	}
	if got != want {
		t.Errorf("processor wrote %q, want %q", got, want)
	}
}

// TestPartitionKey runs the example of docs/outbox.md: by repository no commit is misplaced, by commit
// most are. The second number depends on the order of rows in the stream by a few.
func TestPartitionKey(t *testing.T) {
	out, err := exec.Command("go", "run", "./partitionkey").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var right, wrong int
	_, err = fmt.Sscanf(string(out), "by repository: %d of 2000 commits belong to no repository\n"+
		"by commit:     %d of 2000 commits belong to no repository\n", &right, &wrong)
	if err != nil || right != 0 || wrong < 1000 {
		t.Errorf("%v: %s", err, out)
	}
}

// TestFaults is the test in the README, and also uses the client.
func TestFaults(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 4),
		runneltest.WithFaults("PutRecords:lose-answer@3"))
	client := kinesis.NewFromConfig(server.AWSConfig())
	for range 3 {
		_, err := client.PutRecords(t.Context(), &kinesis.PutRecordsInput{
			StreamName: aws.String("orders"), Records: []types.PutRecordsRequestEntry{
				{PartitionKey: aws.String("order-17"), Data: []byte("paid")},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if counts := server.FaultCounts(); counts["PutRecords:lose-answer"] != 1 {
		t.Errorf("the faults that struck: %v", counts)
	}
}

// TestReadme checks that each Go block of README.md is, word for word, part of an Example with
// output, or of TestFaults, and that each program of this folder has a block too.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	run := functions(t, "../producer/example_test.go", "../consumer/example_test.go",
		"examples_test.go")
	programs := functions(t, "produce/main.go", "consume/main.go")
	blocks := strings.Split(string(text), "```go\n")[1:]
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.HasPrefix(block, "\t") { // a statement without its function
			block = "\t" + strings.ReplaceAll(strings.TrimSuffix(block, "\n"), "\n", "\n\t") + "\n"
		}
		holds := func(body string) bool { return strings.Contains(body, block) }
		if !slices.ContainsFunc(run, holds) {
			t.Errorf("no Example runs this block of README.md:\n%s", block)
		}
		programs = slices.DeleteFunc(programs, holds)
	}
	if len(blocks) < 3 || len(programs) > 0 {
		t.Errorf("README.md has %d Go blocks, and does not show the programs\n%s", len(blocks),
			strings.Join(programs, "\n"))
	}
}

// functions returns the bodies of the functions of the files that go test runs, and of main.
func functions(t *testing.T, files ...string) (bodies []string) {
	t.Helper()
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(source), "\nfunc ")[1:] {
			name, body, _ := strings.Cut(part, "(")
			body, _, _ = strings.Cut(body, "\n}\n")
			isExample := strings.HasPrefix(name, "Example") && strings.Contains(body, "// Output:")
			if isExample || name == "TestFaults" || name == "main" {
				bodies = append(bodies, body+"\n")
			}
		}
	}
	return bodies
}
