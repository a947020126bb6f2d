package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/runneltest"
)

// BenchmarkOpen starts `runnel serve` on a directory with RUNNEL_OPEN_GIB GiB of records (default
// 1), and measures the time until it answers and its memory then. In "closed" the server before
// ended properly. In "killed" it left some hundred megabytes in the log behind the snapshot.
func BenchmarkOpen(b *testing.B) {
	gib, err := strconv.ParseFloat(os.Getenv("RUNNEL_OPEN_GIB"), 64)
	if err != nil || gib <= 0 {
		gib = 1
	}
	binary := filepath.Join(b.TempDir(), "runnel")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", binary, "../cmd/runnel")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build runnel: %v\n%s", err, out)
	}
	data := b.TempDir()
	body := putBody(b)
	server, err := runneltest.Start(b.Context(), runneltest.WithDir(data),
		runneltest.WithStream("bench", shards))
	if err != nil {
		b.Fatal(err)
	}
	run(b, int(gib*(1<<30)/(recordBytes*recordsPerCall)), func(ctx context.Context) error {
		return post(ctx, server, "PutRecords", body, io.Discard)
	})
	if err := server.Close(); err != nil {
		b.Fatal(err)
	}
	measureOpen := func(name string, prepare func(*process)) {
		b.Run(name, func(b *testing.B) {
			var open time.Duration
			var memory float64
			for range b.N {
				b.StopTimer()
				if prepare != nil {
					p := startProcess(b, binary, data)
					prepare(p)
					p.end(b, syscall.SIGKILL)
				}
				b.StartTimer()
				begin := time.Now()
				p := startProcess(b, binary, data)
				open += time.Since(begin)
				b.StopTimer()
				memory = max(memory, p.resident(b))
				p.end(b, syscall.SIGINT)
				b.StartTimer()
			}
			b.ReportMetric(float64(open.Milliseconds())/float64(b.N), "ms/open")
			b.ReportMetric(memory, "MB-resident")
			b.ReportMetric(gib, "GiB")
		})
	}
	measureOpen("closed", nil)
	measureOpen("killed", func(p *process) {
		run(b, 200, func(ctx context.Context) error { return p.put(ctx, body) })
	})
}

// process is a running `runnel serve`.
type process struct {
	*exec.Cmd
	endpoint string
}

// startProcess returns once the server answers.
func startProcess(b *testing.B, binary, data string) *process {
	p := &process{Cmd: exec.CommandContext(b.Context(), binary, "serve", "--addr", "127.0.0.1:0",
		"--data", data)}
	messages, err := p.StderrPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(messages)
	for lines.Scan() {
		if at := regexp.MustCompile(`http://[0-9.:]+`).FindString(lines.Text()); at != "" {
			p.endpoint = at
			break
		}
	}
	response, err := http.Get(p.endpoint + "/health")
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("runnel serve does not answer: %v", err)
	}
	_ = response.Body.Close()
	return p
}

func (p *process) put(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.1")
	request.Header.Set("X-Amz-Target", "Kinesis_20131202.PutRecords")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("put: %s", response.Status)
	}
	_ = response.Body.Close()
	return err
}

// resident returns the process's resident memory in MB.
func (p *process) resident(b *testing.B) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		b.Skip("SKIP: no /proc to read the memory from")
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kilobytes, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	return kilobytes * 1024 / 1e6
}

func (p *process) end(b *testing.B, signal syscall.Signal) {
	if err := p.Process.Signal(signal); err != nil {
		b.Fatal(err)
	}
	_ = p.Wait() // a killed process ends with an error
}
