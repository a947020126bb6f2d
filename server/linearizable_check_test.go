package server_test

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// history is the record of the clients' calls to a stream and of their answers. Safe for concurrent
// use.
type history struct {
	clock atomic.Int64

	mu      sync.Mutex
	calls   []logCall
	numbers map[string]string // sequence number by record, from the first answer with it
	faults  []string
}

// logCall is a call's effect on one shard. Records are named by their data, each another.
type logCall struct {
	client       int
	shard        int
	began, ended int64    // ticks; ended is math.MaxInt64 if there was no answer
	read         bool     // of the whole shard; else a put
	records      []string // put or read, in order
}

func newHistory() *history { return &history{numbers: map[string]string{}} }

// tick returns the next tick: ticks order requests and answers of all clients.
func (h *history) tick() int64 { return h.clock.Add(1) }

func (h *history) add(c logCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
}

// number notes a record's sequence number from an answer.
func (h *history) number(record, number string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if was, told := h.numbers[record]; told && was != number {
		h.faults = append(h.faults, fmt.Sprintf("%s has the numbers %s and %s", record, was, number))
	}
	h.numbers[record] = number
}

func (h *history) fault(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = append(h.faults, fmt.Sprintf(format, args...))
}

// check fails the test unless some order of the calls explains all answers.
func (h *history) check(t *testing.T) {
	t.Helper()
	for _, fault := range h.faults {
		t.Error(fault)
	}
	for shard := range logShards {
		if err := linearizable(h.calls, shard); err != nil {
			t.Errorf("shard %d: %v", shard, err)
		}
	}
}

// linearizable returns an error unless the calls about a shard can be put in an order.
//
// The order of the log itself is known: the longest read shows it, and all reads must be beginnings
// of it. Only one question is left for porcupine: whether every call fits in between its request
// and its answer. So the state is the length of the log, and no search explodes. Puts without an
// answer have all the time until the end. If no read has seen such a put, it never happened, since
// the last read comes after everything.
func linearizable(calls []logCall, shard int) error {
	var log []string
	for _, c := range calls {
		if c.shard == shard && c.read && len(c.records) > len(log) {
			log = c.records
		}
	}
	var history []porcupine.Operation
	for _, c := range calls {
		switch {
		case c.shard != shard:
			continue
		case c.read && !slices.Equal(c.records, log[:len(c.records)]):
			return fmt.Errorf("client %d read %q, another %q", c.client, c.records, log)
		case c.ended == math.MaxInt64 && !slices.Contains(log, c.records[0]):
			continue
		}
		history = append(history, porcupine.Operation{
			ClientId: c.client, Input: c, Call: c.began, Return: c.ended,
		})
	}
	model := porcupine.Model{
		Init: func() any { return 0 },
		Step: func(state, input, _ any) (bool, any) {
			length, c := state.(int), input.(logCall)
			if c.read {
				return length == len(c.records), length
			}
			end := length + len(c.records)
			return end <= len(log) && slices.Equal(log[length:end], c.records), end
		},
	}
	switch porcupine.CheckOperationsTimeout(model, history, time.Minute) {
	case porcupine.Ok:
		return nil
	case porcupine.Illegal:
		return fmt.Errorf("no order explains %+v", history)
	default:
		return fmt.Errorf("%d calls took too long to explain", len(history))
	}
}

// TestLinearizableRefuses shows that the check can fail: each history has one flaw.
func TestLinearizableRefuses(t *testing.T) {
	const never = math.MaxInt64
	put := func(began, ended int64, records ...string) logCall {
		return logCall{began: began, ended: ended, records: records}
	}
	read := func(began, ended int64, records ...string) logCall {
		return logCall{began: began, ended: ended, read: true, records: records}
	}
	for _, c := range []struct {
		name  string
		calls []logCall
		fine  bool
	}{
		{"nothing", nil, true},
		{"one after the other", []logCall{
			read(1, 2), put(3, 4, "a"), put(5, 6, "b"), read(7, 8, "a", "b"),
		}, true},
		{"at once, in either order", []logCall{
			put(1, 6, "a"), put(2, 5, "b"), read(3, 4, "b"), read(7, 8, "b", "a"),
		}, true},
		{"no answer, and stored late", []logCall{
			put(1, never, "a"), put(2, 3, "b"), read(4, 5, "b"), read(6, 7, "b", "a"),
		}, true},
		{"no answer, and never stored", []logCall{
			put(1, never, "a"), put(2, 3, "b"), read(4, 5, "b"),
		}, true},
		{"an acknowledged record is gone", []logCall{put(1, 2, "a"), read(3, 4)}, false},
		{"a stale read", []logCall{
			put(1, 2, "a"), put(3, 4, "b"), read(5, 6, "a"), read(7, 8, "a", "b"),
		}, false},
		{"a read of the future", []logCall{
			read(1, 2, "a"), put(3, 4, "a"), read(5, 6, "a"),
		}, false},
		{"stored before what came before", []logCall{
			put(1, 2, "a"), put(3, 4, "b"), read(5, 6, "b", "a"),
		}, false},
		{"two reads that contradict", []logCall{
			put(1, 9, "a"), put(1, 9, "b"), read(2, 3, "a"), read(4, 5, "b"),
			read(10, 11, "a", "b"),
		}, false},
		{"a record that nobody put", []logCall{put(1, 2, "a"), read(3, 4, "a", "x")}, false},
		{"stored twice", []logCall{put(1, 2, "a"), read(3, 4, "a", "a")}, false},
		{"a call's records with others between", []logCall{
			put(1, 4, "a", "b"), put(2, 3, "c"), read(5, 6, "a", "c", "b"),
		}, false},
	} {
		if err := linearizable(c.calls, 0); (err == nil) != c.fine {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
