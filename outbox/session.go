package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/producer"
)

// session is one ownership of the lease: from a take-over to its end.
//
// Data flows one way: the reader takes rows from the table and puts them; the producer freezes
// units, which the journal has committed before they are sent; the answers go through the journal
// to the committer, which deletes the rows.
type session struct {
	cfg       *Config
	store     store
	fence     fence
	log       *slog.Logger
	intake    *intake
	committer *committer
	journal   *journal
	before    int64 // inversions of earlier owners

	mu       sync.Mutex
	producer *producer.Producer
	// The ages of the oldest row and the oldest transaction, when they were last read.
	oldestRow, oldestTransaction time.Duration
}

func newSession(cfg *Config, s store, l lease) *session {
	n := newIntake(newBounds(cfg.Producer.MaxBufferedRecords, cfg.Producer.MaxBufferedBytes))
	c := newCommitter(s, l.fence)
	j := newJournal(n, c)
	log := cfg.Logger.With("table", cfg.Table.Name, "stream", cfg.Producer.Stream)
	c.log, j.warn, j.deadLetter = log.Warn, log.Warn, cfg.DeadLetter
	c.holdDead = func(key string, id int64) {
		n.hold(key, false)
		n.putBack([]int64{id})
	}
	c.done = func(made *change) {
		n.deleted(made.rows(), false)
		dead := make([]rowID, len(made.dead))
		for i := range made.dead {
			dead[i] = made.dead[i].rowID
		}
		n.deleted(dead, true)
		for _, h := range made.held {
			n.holdStored(h.Key)
		}
	}
	return &session{
		cfg: cfg, store: s, fence: l.fence, log: log, intake: n, committer: c, journal: j,
		before: l.inversions,
	}
}

const (
	// closeGrace is how long the records in the producer may take after the end of the context.
	closeGrace = 9 * time.Second
	// flushGrace is the same for the last transactions, and leaveGrace for the lease.
	flushGrace, leaveGrace = 3 * time.Second, 3 * time.Second
)

// run relays rows until ctx ends, the lease is lost, or the stream refuses the caller. With Once it
// returns nil when everything is in the stream.
func (s *session) run(ctx context.Context) error {
	err := s.buryHeld(ctx)
	var resume []producer.FrozenUnit
	if err == nil {
		resume, err = s.takeOver(ctx)
	}
	if err == nil {
		err = s.listHeld(ctx)
	}
	if err != nil {
		return err
	}
	cfg := s.cfg.producer()
	cfg.Journal, cfg.Resume = s.journal, resume
	reading, stopReading := context.WithCancelCause(ctx)
	defer stopReading(nil)
	cfg.OnResult = func(_ runnel.Record, result producer.Result) { // the journal gets the ends
		if errors.Is(result.Err, producer.ErrRefusedCaller) {
			stopReading(result.Err)
		}
	}
	p, err := producer.New(ctx, cfg)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.producer = p
	s.mu.Unlock()
	r := &reader{
		store: s.store, intake: s.intake, put: putInto(p), poison: s.poison,
		stuck: s.committer.stuckRows, log: s.log.Warn,
	}
	if s.cfg.Once {
		if r.until, err = s.top(ctx); err != nil {
			return errors.Join(err, drop(ctx, p, err))
		}
	}
	return s.work(ctx, reading, stopReading, p, r)
}

// work runs the parts of the session until one of them ends, or reading.
func (s *session) work(
	ctx, reading context.Context, stopReading context.CancelCauseFunc, p *producer.Producer,
	r *reader,
) error {
	owning, stopOwning := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopOwning(nil)
	var owner, readers sync.WaitGroup
	owner.Go(func() { stopOwning(s.committer.run(owning)) })
	owner.Go(func() { stopOwning(s.beat(owning)) })
	owner.Go(func() { s.look(owning) })
	readers.Go(func() { stopReading(r.run(reading)) })
	stop := context.AfterFunc(owning, func() { stopReading(context.Cause(owning)) })
	defer stop()
	<-reading.Done()
	readers.Wait()
	err := context.Cause(reading)
	if owning.Err() != nil { // the lease is lost
		err = context.Cause(owning)
		err = errors.Join(err, drop(ctx, p, err))
	} else {
		err = s.close(ctx, owning, p, err)
	}
	stopOwning(errEnded)
	owner.Wait()
	return err
}

var errEnded = errors.New("the relay has ended")

// close ends a session that has the lease. It delivers the rows in the producer, within limits, and
// commits the last deletions. Other units stay open in the journal, for the next owner.
func (s *session) close(ctx, owning context.Context, p *producer.Producer, cause error) error {
	grace, cancel := context.WithTimeout(owning, closeGrace)
	err := p.Close(grace)
	cancel()
	flushing, cancel := context.WithTimeout(owning, flushGrace)
	defer cancel()
	if err := s.committer.flush(flushing); err != nil {
		s.log.Warn("the last deletions were not committed; the next relay sends these rows' units "+
			"again, and readers drop them", "error", err)
	}
	halted := (*producer.HaltedError)(nil)
	switch {
	case errors.As(err, &halted):
		return halted
	case errors.Is(cause, errDone):
		if stuck := s.committer.stuckRows(); stuck > 0 {
			return fmt.Errorf("%w: %d", ErrStuck, stuck)
		}
		return nil
	case ctx.Err() != nil:
		if left := s.journal.open(); left > 0 {
			s.log.Info("units are open in the journal; the next relay continues with them",
				"units", left)
		}
		return context.Cause(ctx)
	}
	return cause
}

// drop ends a session that has lost the lease. Nothing is settled: the next owner has the units.
func drop(ctx context.Context, p *producer.Producer, cause error) error {
	now, cancel := context.WithCancelCause(ctx)
	cancel(cause)
	if err := p.Close(now); errors.Is(err, producer.ErrHalted) {
		return err
	}
	return nil
}

// beat says again and again that the relay is alive, and looks for keys that were released.
func (s *session) beat(ctx context.Context) error {
	every := min(s.cfg.Failover/3, time.Second)
	for failed := false; ; {
		if err := retry.Wait(ctx, every); err != nil {
			return err
		}
		err := s.beatOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errLost), errors.Is(err, errMoved), errors.Is(err, errReplaced):
			return err
		case err != nil && !failed:
			s.log.Warn("the lease was not renewed; trying again", "error", err)
		}
		failed = err != nil
	}
}

func (s *session) beatOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(s.cfg.Failover, time.Second))
	defer cancel()
	if err := s.store.beat(ctx, s.fence, s.inversions()); err != nil {
		return err
	}
	return s.listHeld(ctx)
}

// look reads the ages from time to time, apart from the heartbeats: it may take long.
func (s *session) look(ctx context.Context) {
	for {
		row, transaction, err := s.store.ages(ctx)
		if err == nil {
			s.mu.Lock()
			s.oldestRow, s.oldestTransaction = row, transaction
			s.mu.Unlock()
		}
		if retry.Wait(ctx, lookEvery) != nil {
			return
		}
	}
}

// lookEvery is the time between two looks at the ages: the index may have many deleted rows before
// the oldest one.
const lookEvery = 10 * time.Second

// buryHeld makes dead letters of the rows that hold keys, if the relay is to hold none.
func (s *session) buryHeld(ctx context.Context) error {
	if !s.cfg.DeadLetter {
		return nil
	}
	held, err := s.store.held(ctx)
	for _, h := range held {
		if err == nil {
			_, err = s.store.release(ctx, h.Key, true)
		}
		if refused(err) {
			s.log.Warn("a held row cannot become a dead letter", "key", h.Key, "error", err)
			err = nil
		}
	}
	return err
}

// listHeld reads the held keys.
func (s *session) listHeld(ctx context.Context) error {
	list := s.intake.beginList()
	held, err := s.store.held(ctx)
	if err == nil {
		s.intake.endList(list, held)
	}
	return err
}

// inversions returns how many rows were put behind a later row of their key, by all owners.
func (s *session) inversions() int64 {
	s.intake.mu.Lock()
	defer s.intake.mu.Unlock()
	return s.before + s.intake.counts.inversions
}

// poison handles a row that no stream takes.
func (s *session) poison(r *row, cause error) {
	s.log.Warn("a row cannot be put", "key", r.key, "id", r.id, "error", cause)
	reason := fmt.Sprint(cause)
	if s.cfg.DeadLetter {
		name := rowID{r.id, r.version, checksum(r)}
		s.committer.add(func(c *change) { c.bury([]rowID{name}, r.key, reason) })
		return
	}
	s.intake.hold(r.key, false)
	s.intake.putBack([]int64{r.id})
	s.committer.add(func(c *change) {
		c.held = append(c.held, HeldKey{Key: r.key, Reason: reason, IDs: []int64{r.id}})
	})
}

// top returns the highest id of the table, or 1 if that is higher: 0 would be no bound.
func (s *session) top(ctx context.Context) (int64, error) {
	p, err := s.store.window(ctx, window{after: lowest, most: limits{rows: 1}, top: true})
	return max(1, p.top), err
}
