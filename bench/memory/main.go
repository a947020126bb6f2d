// Command memory puts far more data into `runnel serve --memory=SIZE` than it may keep, and
// compares the process' memory with the limit. It prints Markdown. `make bench-memory` runs it, and
// bench/README.md has its output.
//
// Each load has a server of its own. It puts four times the limit, or until a thousand items are
// refused, for 45 seconds at most.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Config has the settings of a measurement.
type Config struct {
	// Runnel is the binary that `make build` makes. Default bin/runnel.
	Runnel string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, w io.Writer) error {
	var cfg Config
	flags := flag.NewFlagSet("memory", flag.ExitOnError)
	flags.StringVar(&cfg.Runnel, "runnel", "bin/runnel", "the binary of runnel")
	_ = flags.Parse(args) // it exits
	_, _ = fmt.Fprint(w, "| load | limit, MiB | stored | data, MiB | refused | VmRSS, MiB: most, "+
		"3 s later | most, times the limit |\n|---|---|---|---|---|---|---|\n")
	for _, l := range loads() {
		fmt.Fprintln(os.Stderr, l.name)
		row, err := l.measure(ctx, cfg)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		_, _ = fmt.Fprintln(w, row)
	}
	return nil
}

// measure puts the load into a server of its own and returns a row of the table.
func (l *load) measure(ctx context.Context, cfg Config) (row string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil { // a free port
		return "", err
	}
	server := exec.CommandContext(ctx, cfg.Runnel, "serve", "--quiet", "--addr", address,
		fmt.Sprintf("--memory=%dMiB", l.limit), "--stream", "s:8", "--stream-delay", "0")
	if err := server.Start(); err != nil {
		return "", err
	}
	defer func() {
		_ = server.Process.Kill() // it may have ended already
		_ = server.Wait()
	}()
	t := &target{address: address}
	if err := t.wait(ctx); err != nil {
		return "", err
	}
	watch := watchMemory(server.Process.Pid)
	stored, refused, err := l.put(ctx, t)
	if err != nil {
		return "", err
	}
	time.Sleep(3 * time.Second)
	most, last := watch.stop()
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d, %d | %.2f |", l.name, l.limit, stored,
		stored*int64(l.size)>>20, refused, most, last, float64(most)/float64(l.limit)), nil
}

// watched is the memory of a process, in MiB.
type watched struct {
	end        chan struct{}
	ended      sync.WaitGroup
	most, last int
}

// watchMemory looks at a process' memory every 10 ms until stop.
func watchMemory(pid int) *watched {
	w := &watched{end: make(chan struct{})}
	w.ended.Go(func() {
		for {
			w.last = resident(pid)
			w.most = max(w.most, w.last)
			select {
			case <-w.end:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	return w
}

func (w *watched) stop() (most, last int) {
	close(w.end)
	w.ended.Wait()
	return w.most, w.last
}

// resident returns VmRSS of Linux's /proc/PID/status in MiB; 0 once the process has ended.
func resident(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, _ := strconv.Atoi(strings.Fields(rest + " none")[0])
	return kib >> 10
}
