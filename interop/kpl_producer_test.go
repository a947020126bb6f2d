package interop

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// kplProducer is a JVM with the KPL and its native process.
type kplProducer struct {
	f        *fleet
	command  *exec.Cmd
	orders   io.WriteCloser
	lines    *bufio.Scanner
	messages bytes.Buffer
	ended    bool
}

// kplPut is a user record that the KPL has reported as stored.
type kplPut struct {
	data, key, hashKey string // hashKey is "" without an explicit one
	shard, sequence    string
	attempts           int
}

func startKPL(f *fleet) *kplProducer {
	f.t.Helper()
	dir, err := filepath.Abs("../.tools/interop/kpl")
	f.must(err)
	host, port, err := net.SplitHostPort(f.p.addr)
	f.must(err)
	// The end of its input ends it, and not the context: its orderly end is part of the test.
	p := &kplProducer{f: f, command: exec.CommandContext(context.WithoutCancel(f.ctx), "java",
		"-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", filepath.Join(dir, "lib", "*")+":"+filepath.Join(dir, "classes"),
		"Produce", *f.stream, host, port, f.p.ca, f.t.TempDir())}
	p.command.Env = f.p.environment("https", "")
	p.command.Stderr = &p.messages
	// The JVM gets a separate process group. Killing the group ends the native process too.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.orders, err = p.command.StdinPipe()
	f.must(err)
	out, err := p.command.StdoutPipe()
	f.must(err)
	p.lines = bufio.NewScanner(out)
	f.must(p.command.Start())
	f.t.Cleanup(func() {
		p.kill()
		if f.t.Failed() {
			f.t.Logf("the KPL:\n%s", &p.messages)
		}
	})
	return p
}

// put makes the KPL put that many more user records, and waits until all are in the stream.
func (p *kplProducer) put(count int) (records []kplPut) {
	t := p.f.t
	t.Helper()
	_, err := fmt.Fprintln(p.orders, count)
	p.f.must(err)
	for p.lines.Scan() {
		words := strings.Fields(p.lines.Text())
		switch {
		case len(words) == 7 && words[0] == "PUT":
			attempts, err := strconv.Atoi(words[6])
			p.f.must(err)
			records = append(records, kplPut{
				words[1], words[2], strings.Trim(words[3], "-"), words[4], words[5], attempts,
			})
		case len(words) == 1 && words[0] == "DONE":
			if len(records) != count {
				t.Fatalf("the KPL put %d records, want %d", len(records), count)
			}
			return records
		default:
			t.Errorf("the KPL: %.300s", p.lines.Text())
		}
	}
	t.Fatalf("the KPL ended: %v", p.lines.Err())
	return nil
}

// metricsCome returns a condition: the KPL has reported that many user records to CloudWatch.
func (p *kplProducer) metricsCome(want int) func() (bool, string) {
	samples := regexp.MustCompile(`(?m)^runnel_cloudwatch_value_sum\{.*dimensions="StreamName=` +
		*p.f.stream + `".*metric="UserRecordsPut".*namespace="KinesisProducerLibrary".*\} (\S+)$`)
	return func() (bool, string) {
		request, err := http.NewRequestWithContext(p.f.ctx, http.MethodGet,
			"http://"+p.f.p.addr+"/metrics", http.NoBody)
		p.f.must(err)
		answer, err := http.DefaultClient.Do(request)
		p.f.must(err)
		page, err := io.ReadAll(answer.Body)
		p.f.must(errors.Join(err, answer.Body.Close()))
		sum := samples.FindSubmatch(page)
		if sum == nil {
			return false, fmt.Sprintf("no sample:\n%s", page)
		}
		got, err := strconv.ParseFloat(string(sum[1]), 64)
		p.f.must(err)
		return got >= float64(want), fmt.Sprintf("%v user records put", got)
	}
}

// stop ends the KPL in order and waits for both of its processes.
func (p *kplProducer) stop() {
	p.f.must(p.orders.Close())
	for p.lines.Scan() {
		p.f.t.Errorf("the KPL: %.300s", p.lines.Text())
	}
	p.ended = true
	if err := p.command.Wait(); err != nil {
		p.f.t.Errorf("the KPL ended: %v", err)
	}
	p.f.until("the native process has ended", func() (bool, string) {
		err := syscall.Kill(-p.command.Process.Pid, 0)
		return errors.Is(err, syscall.ESRCH), fmt.Sprint(err)
	})
}

func (p *kplProducer) kill() {
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) // the group is empty after stop
	if !p.ended {
		_ = p.command.Wait()
	}
}
