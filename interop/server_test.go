package interop

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The clients sign with this key.
const (
	accessKeyID     = "AKIDINTEROP"
	secretAccessKey = "interop/secret+key"
)

// process is a running `runnel serve`.
type process struct {
	binary string // the file of the command runnel
	addr   string // HOST:PORT, for http and https
	ca     string // the file of its certificate authority
}

// serve builds the binary and starts the server, until the test's end. The server checks every
// signature and serves plain HTTP and TLS on one port.
func serve(t *testing.T) *process {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "runnel")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/runnel")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build runnel: %v\n%s", err, out)
	}
	keys := filepath.Join(dir, "credentials")
	text := fmt.Sprintf("[interop]\naws_access_key_id = %s\naws_secret_access_key = %s\n",
		accessKeyID, secretAccessKey)
	if err := os.WriteFile(keys, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// A signal ends it, and not the context: its orderly end is part of the test.
	command := exec.CommandContext(context.WithoutCancel(t.Context()), binary, "serve",
		"--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), "--tls",
		"--auth", "sigv4="+keys)
	messages, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(messages)
	p := &process{binary: binary, ca: filepath.Join(dir, "data", "tls", "ca.pem")}
	listening := regexp.MustCompile(`https?://(127\.0\.0\.1:\d+)`)
	for p.addr == "" && lines.Scan() {
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			p.addr = found[1]
		}
	}
	rest := make(chan string, 1)
	go func() {
		var text strings.Builder
		for lines.Scan() {
			text.WriteString(lines.Text() + "\n")
		}
		rest <- text.String()
	}()
	t.Cleanup(func() {
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		text := <-rest
		if err := command.Wait(); err != nil || t.Failed() {
			t.Logf("runnel serve ended: %v\n%s", err, text)
			if err != nil {
				t.Fail()
			}
		}
	})
	if p.addr == "" {
		t.Fatal("runnel serve did not say where it listens")
	}
	return p
}

// environment returns a client's environment variables: AWS's variables have the endpoint, the
// region and the key, and STREAM has the stream's name.
func (p *process) environment(scheme, stream string) []string {
	around := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "AWS_")
	})
	return append(around,
		"AWS_ENDPOINT_URL="+scheme+"://"+p.addr, "AWS_REGION=eu-west-1",
		"AWS_DEFAULT_REGION=eu-west-1", "AWS_ACCESS_KEY_ID="+accessKeyID,
		"AWS_SECRET_ACCESS_KEY="+secretAccessKey,
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CA_BUNDLE="+p.ca, "NODE_EXTRA_CA_CERTS="+p.ca,
		"NODE_NO_WARNINGS=1", "PYTHONWARNINGS=ignore", "STREAM="+stream)
}

const journeyTime = 3 * time.Minute // the longest time of a client, on a busy machine
