package wal

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
)

// Sequence waits until size bytes have room, which is the log's back-pressure, then calls fn
// once. fn takes its machines' locks, decides, applies the decision to the state in memory and
// appends frames. The log keeps all frames of all callers in the order of Append. fn must not
// block on I/O or channels, and may call the log only through tx. If fn panics, the log is
// poisoned, since the state may be half changed. size is an estimate of the bytes that fn will
// append; afterwards the actual bytes appended and held count.
//
// Errors, all before fn was called: ctx's, ErrClosed, ErrStalled, Obstruct's cause, or a
// *PoisonedError.
func (l *Log) Sequence(ctx context.Context, size int, fn func(tx *Tx)) error {
	return sequence(ctx, l, size, ordinary, fn)
}

// purpose distinguishes the kinds of Sequence.
type purpose int

const (
	ordinary purpose = iota
	freeing          // SequenceFreeing
	paced            // SequencePaced
)

func sequence(ctx context.Context, l *Log, size int, as purpose, fn func(tx *Tx)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	claimed, err := claims{l}.admit(ctx, int64(size), as)
	if err != nil {
		return err
	}
	if claimed {
		defer claims{l}.unclaim(int64(size))
	}
	tx, _ := l.txs.Get().(*Tx)
	if err := l.run(tx, fn); err != nil {
		l.room.add(-int64(size), -int64(size))
		return err
	}
	switch {
	case tx.pending == 0:
	case l.cfg.Inline:
		for some := true; some && l.Durable() < tx.end; {
			some, _ = l.commitPending()
		}
	default:
		nudge(l.kick)
	}
	if by := tx.pending - int64(size); by != 0 || tx.held != 0 {
		l.room.add(by+tx.held, by)
	}
	*tx = Tx{}
	l.txs.Put(tx)
	return nil
}

// run calls fn with the gate held.
func (l *Log) run(tx *Tx, fn func(tx *Tx)) error {
	l.gate.RLock()
	defer l.gate.RUnlock()
	if l.shut.Load() {
		return l.Err()
	}
	tx.log = l
	finished := false
	defer func() {
		if !finished { // fn panics; the panic continues
			l.poison(errors.New("a function that changes the state has panicked"))
		}
	}()
	fn(tx)
	finished = true
	return nil
}

// Tx appends frames inside Sequence. Use it from one goroutine and do not keep it.
type Tx struct {
	log     *Log
	pending int64
	held    int64
	end     LSN // of the last frame
}

// Append adds a frame, copies the payload, and returns the LSN of the frame's end. If durable is
// not nil, the log calls it once the frame is durable, in log order, before Wait for that LSN
// returns. The call comes from the committer's goroutine or, with Config.Inline, from a caller's
// before any Sequence returns. durable must not block and must not call the log.
//
// A payload has at most 1 GiB: a larger one poisons the log.
func (t *Tx) Append(kind Kind, payload []byte, durable func()) LSN {
	return t.add(kind, payload, durable, false)
}

// AppendSynced is Append for a frame that counts as durable only after a sync, even if
// Config.SyncInterval is set. The sync covers all frames before it too.
func (t *Tx) AppendSynced(kind Kind, payload []byte, durable func()) LSN {
	return t.add(kind, payload, durable, true)
}

func (t *Tx) add(kind Kind, payload []byte, durable func(), synced bool) LSN {
	sum := crc32.Checksum(payload, castagnoli)
	n := frameSize(len(payload))
	l := t.log
	if len(payload) > maxPayload || kind == 0 || kind == kindMark {
		l.poison(fmt.Errorf("a frame of kind %d with %d bytes: the limit is %d",
			kind, len(payload), maxPayload))
	}
	t.pending += int64(n)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.poison != nil { // Wait returns the error
		t.pending -= int64(n)
		return l.mu.queue.end + LSN(n)
	}
	c := l.mu.queue.tail(n)
	c.add(kind, sum, payload, durable)
	c.synced = c.synced || synced
	l.mu.queue.end += LSN(n)
	t.end = l.mu.queue.end
	return t.end
}

// Hold keeps size bytes counted as pending, in addition to the frames, until Release. A machine
// uses it for data that it keeps in memory until it has written it elsewhere. It must be able to
// write that data without new frames and without waiting for other callers, because Sequence may
// be waiting for the Release.
func (t *Tx) Hold(size int) { t.held += int64(size) }

// Release ends a Hold.
func (l *Log) Release(size int) { l.room.add(-int64(size), 0) }

// Wait returns nil once the log is durable up to lsn. A reader of state that a frame at lsn made
// must call Wait before it answers, since no change may be visible before it is durable. Errors:
// ctx's, ErrClosed, or a *PoisonedError; none if lsn is already durable.
func (l *Log) Wait(ctx context.Context, lsn LSN) error {
	for l.Durable() < lsn {
		done, err := l.waitFor(lsn)
		if err != nil {
			return err
		}
		if done == nil {
			continue
		}
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (l *Log) waitFor(lsn LSN) (<-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.Durable() >= lsn:
		return nil, nil
	case l.mu.poison != nil:
		return nil, l.mu.poison
	case l.mu.state == stateOpen:
		return nil, errNotStarted
	case l.mu.state == stateClosed, l.mu.state == stateClosing && lsn > l.mu.queue.end:
		return nil, ErrClosed
	}
	return l.mu.queue.wait(lsn), nil
}
