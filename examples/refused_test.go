package examples_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/runneltest"
)

// build builds a program of the module.
func build(t *testing.T, dir, program string) string {
	t.Helper()
	name := filepath.Join(dir, filepath.Base(program))
	command := exec.Command("go", "build", "-o", name, program)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", program, err, out)
	}
	return name
}

// TestProduceIsRefused runs the program without its stream, and with a wrong secret. The program
// checks only the error of Close; it must end with an error that names the cause.
func TestProduceIsRefused(t *testing.T) {
	dir := t.TempDir()
	program := build(t, dir, "./produce")
	refused := func(endpoint, secret string, wants ...string) {
		t.Helper()
		produce := exec.Command(program)
		produce.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+endpoint, "AWS_REGION=us-east-1",
			"AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY="+secret)
		out, err := produce.CombinedOutput()
		if produce.ProcessState.ExitCode() != 1 {
			t.Errorf("it ended with %v: %s", err, out)
		}
		for _, want := range append(wants, "3 records were not delivered", `key "order-17"`) {
			if !strings.Contains(string(out), want) {
				t.Errorf("%q is not in: %s", want, out)
			}
		}
	}
	refused(runneltest.NewServer(t).Endpoint(), "any", "ResourceNotFoundException", "orders")

	keys := filepath.Join(dir, "keys.ini")
	err := os.WriteFile(keys, []byte(
		"[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = right\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	serve := exec.Command(build(t, dir, "../cmd/runnel"), "serve", "--addr", "127.0.0.1:0",
		"--memory", "--stream", "orders:1", "--auth", "sigv4="+keys)
	said := make(lines, 100)
	serve.Stderr = said
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = serve.Process.Kill()
		_ = serve.Wait()
	}()
	endpoint := ""
	for limit := time.After(time.Minute); endpoint == ""; {
		select {
		case line := <-said:
			endpoint = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(line)
		case <-limit:
			t.Fatal("the server has not named its address")
		}
	}
	refused(endpoint, "wrong", "InvalidSignatureException")
}

// lines is a writer that passes on the lines of a process.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		select {
		case l <- string(line):
		default:
		}
	}
	return len(p), nil
}
