package fsck_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/fsck"
)

// limitedDir marks the test's own process, started again, as the one with the limit.
const limitedDir = "RUNNEL_LIMITED_DIR"

// TestALimitOnFiles lowers the limit on the length of files under a running server, as `prlimit
// --fsize` does: puts are refused and reads go on; when it is lifted, puts go on by themselves; and
// after a kill all acknowledged records are there. The limit must not apply to this process, so
// another one has it, and reports the acknowledged records.
func TestALimitOnFiles(t *testing.T) {
	if dir := os.Getenv(limitedDir); dir != "" {
		underLimits(t, dir)
		return
	}
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestALimitOnFiles$")
	child.Env = append(os.Environ(), limitedDir+"="+dir)
	out, err := child.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the limited process has not come to its end: %v\n%s", err, out)
	}
	report, err := fsck.Check(t.Context(), vfs.OS{}, dir)
	if err != nil || !report.OK {
		t.Fatalf("after the kill: %v, %+v", err, report)
	}
	served, err := serve(t, vfs.OS{}, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(served, "\n")
	acknowledged := 0
	for line := range strings.Lines(string(out)) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "acknowledged "); ok {
			acknowledged++
			if strings.Count(text, id) != 1 {
				t.Errorf("%s is there %d times", id, strings.Count(text, id))
			}
		}
	}
	if acknowledged < 30 {
		t.Errorf("only %d records were acknowledged:\n%s", acknowledged, out)
	}
}

// limited is the server under limits.
type limited struct {
	t  *testing.T
	c  client
	id int
}

func underLimits(t *testing.T, dir string) {
	cfg := config(dir)
	cfg.LogFileSize = 256 << 10
	s, err := open(t, vfs.OS{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	l := &limited{t: t, c: client{s}}
	if _, err := l.c.kinesis("CreateStream",
		object{"StreamName": "s", "ShardCount": 1}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := l.put(5 << 10); err != nil {
			t.Fatal(err)
		}
	}
	// The log's files have this length already, and yet may not be written beyond the limit.
	l.stall(64<<10, 5<<10, "write the log file")
	// A record that needs a log file of its own, which must be longer than the limit.
	l.stall(300<<10, 400<<10, "make room for a frame of")
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// put stores a record, and reports it.
func (l *limited) put(size int) error {
	l.id++
	id := fmt.Sprintf("<record-%d>", l.id)
	data := append([]byte(id), bytes.Repeat([]byte("x"), size)...)
	_, err := l.c.kinesis("PutRecord", object{
		"StreamName": "s", "PartitionKey": "k", "Data": base64.StdEncoding.EncodeToString(data),
	})
	if err == nil {
		fmt.Println("acknowledged " + id)
	}
	return err
}

// stall puts records of a size under a limit until they are refused, for that reason, and then
// without it.
func (l *limited) stall(limit uint64, size int, reason string) {
	l.t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		l.t.Fatal(err)
	}
	set := func(soft uint64) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE,
			&syscall.Rlimit{Cur: soft, Max: was.Max}); err != nil {
			l.t.Fatal(err)
		}
	}
	before, err := l.c.records("s", "shardId-000000000000")
	if err != nil {
		l.t.Fatal(err)
	}
	set(limit)
	var enough atomic.Bool
	waiting := make(chan struct{})
	go func() { // the first that finds no room waits for it, or is refused
		defer close(waiting)
		for !enough.Load() && l.put(size) == nil {
			continue
		}
	}()
	l.within("the server is ill", func() bool {
		code, text := l.health()
		return code == http.StatusServiceUnavailable && strings.Contains(text, reason) &&
			strings.Contains(text, "file too large")
	})
	other := client{l.c.Server}
	_, err = other.kinesis("PutRecord",
		object{"StreamName": "s", "PartitionKey": "k", "Data": "bm8="})
	if err == nil || !strings.Contains(err.Error(), "file too large") {
		l.t.Fatalf("a put beyond the limit: %v", err)
	}
	now, err := other.records("s", "shardId-000000000000")
	if err != nil || len(now) < len(before) || !slices.Equal(now[:len(before)], before) {
		l.t.Fatalf("%d records of %d can be read: %v", len(now), len(before), err)
	}
	enough.Store(true)
	set(was.Cur)
	<-waiting
	l.within("the server is well", func() bool {
		code, _ := l.health()
		return code == http.StatusOK
	})
	for range 10 {
		if err := l.put(100); err != nil {
			l.t.Fatalf("without the limit: %v", err)
		}
	}
}

func (l *limited) health() (int, string) {
	w := httptest.NewRecorder()
	l.c.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/health", nil))
	return w.Code, w.Body.String()
}

func (l *limited) within(what string, holds func() bool) {
	l.t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); {
		if time.Now().After(end) {
			code, text := l.health()
			l.t.Fatalf("not within a minute: %s: %d %s", what, code, text)
		}
		<-time.After(10 * time.Millisecond)
	}
}
