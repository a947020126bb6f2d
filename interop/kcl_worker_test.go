package interop

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// worker is a process of the KCL, or of runnel. A KCL prints a line for each shard that it begins
// and one for each record.
type worker struct {
	t        *testing.T
	name     string
	began    time.Time
	command  *exec.Cmd
	messages bytes.Buffer
	printed  sync.WaitGroup

	mu     sync.Mutex
	shards int
	ended  time.Time // zero while it runs
	killed bool
}

func startWorker(
	t *testing.T, line func(w *worker, text string), name string, environment []string,
	command ...string,
) *worker {
	t.Helper()
	// A signal ends it, and not the context: its orderly end is part of the test.
	ctx := context.WithoutCancel(t.Context())
	w := &worker{
		t: t, name: name, began: time.Now(),
		command: exec.CommandContext(ctx, command[0], command[1:]...),
	}
	w.command.Env = environment
	w.command.Stderr = &w.messages
	out, err := w.command.StdoutPipe()
	if err == nil {
		err = w.command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.printed.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			line(w, lines.Text())
		}
	})
	t.Cleanup(func() {
		w.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("worker %s:\n%s", name, &w.messages)
		}
	})
	return w
}

// kclLine takes a line of a KCL worker.
func (d *delivered) kclLine(w *worker, text string) {
	fields := strings.Fields(text)
	switch {
	case len(fields) == 2 && fields[0] == "SHARD":
		w.mu.Lock()
		w.shards++
		w.mu.Unlock()
	case len(fields) == 4 && fields[0] == "RECORD":
		d.add(delivery{w.name, fields[1], fields[2], fields[3], time.Now()})
	}
}

// holds reports whether the worker has begun a shard.
func (w *worker) holds() (bool, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shards > 0, fmt.Sprintf("%d shards", w.shards)
}

func (w *worker) kill() { w.end(syscall.SIGKILL) }
func (w *worker) stop() { w.end(syscall.SIGTERM) }

// end sends the signal and waits for the process. Only the first call does so.
func (w *worker) end(signal syscall.Signal) {
	w.mu.Lock()
	was := w.ended
	if was.IsZero() {
		w.ended, w.killed = time.Now(), signal == syscall.SIGKILL
	}
	w.mu.Unlock()
	if !was.IsZero() {
		return
	}
	if err := w.command.Process.Signal(signal); err != nil {
		w.t.Error(err)
	}
	w.printed.Wait()
	_ = w.command.Wait() // the error is the signal
}

// delivery is one record out of a worker.
type delivery struct {
	worker, shard, key, data string
	at                       time.Time
}

// delivered has the records that the workers have read: for each key the data of the first
// deliveries, in order.
type delivered struct {
	mu    sync.Mutex
	total int
	again []delivery // the repeated ones
	seen  map[string]map[string]bool
	order map[string][]string
}

func newDelivered() *delivered {
	return &delivered{seen: map[string]map[string]bool{}, order: map[string][]string{}}
}

func (d *delivered) add(one delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, data := one.key, one.data
	if d.seen[key] == nil {
		d.seen[key] = map[string]bool{}
	}
	if d.seen[key][data] {
		d.again = append(d.again, one)
		return // a KCL repeats the records behind the last checkpoint: at-least-once delivery
	}
	d.seen[key][data] = true
	d.order[key] = append(d.order[key], data)
	d.total++
}

func (d *delivered) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total
}

func (d *delivered) repeats() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.again)
}

// differs returns the keys with missing or unexpected data, with one fault for each.
func (d *delivered) differs(want map[string]map[string]bool) map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	faults := map[string]string{}
	for key, data := range want {
		for one := range data {
			if !d.seen[key][one] {
				faults[key] = fmt.Sprintf("%.40s is missing", one)
			}
		}
	}
	for key, data := range d.seen {
		for one := range data {
			if !want[key][one] {
				faults[key] = fmt.Sprintf("%.40s is too much", one)
			}
		}
	}
	return faults
}

// disorder returns a fault for each key with records in another order than 1, 2, 3, …
func (d *delivered) disorder() (faults []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, order := range d.order {
		for i, data := range order {
			if data != strconv.Itoa(i+1) {
				faults = append(faults, fmt.Sprintf("%s was read as %q", key, order))
				break
			}
		}
	}
	return faults
}

// TestDelivered checks that repeated records count once and that disorder is found.
func TestDelivered(t *testing.T) {
	for _, c := range []struct {
		data  string
		count int
		again int
		fault string
	}{
		{"1 2 3", 3, 0, ""},
		{"1 2 1 2 3", 3, 2, ""}, // read again after a worker's death
		{"2 1", 2, 0, `k was read as ["2" "1"]`},
		{"1 3", 2, 0, `k was read as ["1" "3"]`},
	} {
		d := newDelivered()
		for _, data := range strings.Fields(c.data) {
			d.add(delivery{key: "k", data: data})
		}
		fault := strings.Join(d.disorder(), " ")
		if d.count() != c.count || d.repeats() != c.again || fault != c.fault {
			t.Errorf("%s: %d records, %d again, %q; want %d, %d, %q", c.data,
				d.count(), d.repeats(), fault, c.count, c.again, c.fault)
		}
	}
}

// TestDiffers checks that missing and unexpected records are found.
func TestDiffers(t *testing.T) {
	d := newDelivered()
	d.add(delivery{key: "k", data: "1"})
	for want, fault := range map[string]string{
		"1": "", "1 2": "2 is missing", "": "1 is too much",
	} {
		data := map[string]bool{}
		for _, one := range strings.Fields(want) {
			data[one] = true
		}
		if got := d.differs(map[string]map[string]bool{"k": data})["k"]; got != fault {
			t.Errorf("%q: %q, want %q", want, got, fault)
		}
	}
}
