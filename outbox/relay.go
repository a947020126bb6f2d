package outbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/producer"
)

// Relay puts the rows of an outbox table into a stream. New makes one, and Run runs it.
type Relay struct {
	cfg Config

	mu      sync.Mutex
	session *session // nil: another relay has the lease, or none
	owner   string   // the other relay that has the lease
	total   counts   // of ended sessions
}

// The errors of Run.
var (
	// ErrOtherStream means that the table's rows have gone into another stream so far, or into one
	// of the same name that was deleted since.
	ErrOtherStream = errors.New("the table belongs to another stream")
	// ErrHeld means that a relay with Once has put everything but the rows of held keys.
	ErrHeld = errors.New("keys are held")
	// ErrStuck means that rows are in the stream and cannot be deleted. With Once it is the end
	// beside rows whose deletion the database refuses, for example because of a foreign key; they
	// are open in the journal. Without Once too it ends a relay whose deletions have no effect,
	// since a trigger, a rule or a policy keeps the rows.
	ErrStuck = errors.New("rows are in the stream and cannot be deleted")
)

// New returns a relay. It makes no call. The error is that of cfg.Validate.
func New(cfg Config) (*Relay, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Relay{cfg: cfg.withDefaults()}, nil
}

// Run relays rows until ctx ends; it then waits up to 15 s for what is on its way, hands the lease
// over, and returns nil. While another relay has the lease, it waits as a standby.
//
// It returns an error if the table is no outbox (ErrUnfit), belongs to another stream
// (ErrOtherStream), or cannot be read at the start, and if the stream refuses the caller
// (producer.ErrRefusedCaller). Rows that were not acknowledged are then open in the journal or in
// the table, for the next Run. With Config.Once it returns nil when everything is done, ErrHeld,
// ErrStuck, or the context's cause. It retries all other failures without limit. Run must not be
// called twice at a time.
func (r *Relay) Run(ctx context.Context) error {
	err := r.run(ctx)
	if !r.cfg.Once && err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("outbox: relay table %s to stream %s: %w", r.cfg.Table.Name,
			r.cfg.Producer.Stream, err)
	}
	return nil
}

func (r *Relay) run(ctx context.Context) error {
	if err := Check(ctx, r.cfg.DB, r.cfg.Table); err != nil {
		return err
	}
	var s store
	err := patiently(ctx, func() (err error) {
		s, err = open(ctx, r.cfg.DB, r.cfg.Table, max(leastTimeout, 3*r.cfg.Failover))
		return err
	})
	if err != nil {
		return err
	}
	defer s.close()
	created, err := r.created(ctx)
	if err != nil {
		return err
	}
	wish := claim{
		failover: r.cfg.Failover, stream: streamref.Name(r.cfg.Producer.Stream), created: created,
	}
	for ended := 0; ; {
		l, err := r.await(ctx, s, &wish)
		if err != nil {
			return err
		}
		began := time.Now()
		err = r.own(ctx, s, l)
		switch {
		case err == nil && r.cfg.Once:
			return r.verdict(ctx, s)
		case ctx.Err() != nil || !retriable(err):
			return err
		}
		r.cfg.Logger.Warn("the relay starts anew", "table", r.cfg.Table.Name, "error", err)
		if ended++; time.Since(began) > r.cfg.Failover {
			ended = 0
		}
		if err := databaseBackoff.Wait(ctx, max(1, ended)); err != nil {
			return err
		}
	}
}

// leastTimeout is the least time that a statement may take before its connection counts as dead.
const leastTimeout = 5 * time.Second

// retriable reports whether a session has ended for a reason that passes.
func retriable(err error) bool {
	var put *putError
	for _, lasting := range []error{
		producer.ErrRefusedCaller, producer.ErrNotResumable, errUndeletable, errReplaced,
		ErrStuck,
	} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	return !errors.As(err, &put)
}

// await waits until the relay has the lease.
func (r *Relay) await(ctx context.Context, s store, wish *claim) (lease, error) {
	wish.before, wish.owner = wish.owner, r.cfg.Owner+" "+rand.Text()[:10]
	waiting, failures := "", 0
	defer r.setOwner("")
	for {
		trying, cancel := context.WithTimeout(ctx, commitTimeout)
		l, err := s.claim(trying, *wish)
		cancel()
		switch {
		case ctx.Err() != nil:
			return l, context.Cause(ctx)
		case err != nil:
			if failures++; failures == 1 {
				r.cfg.Logger.Warn("the lease cannot be taken; trying again",
					"table", r.cfg.Table.Name, "error", err)
			}
			if err := databaseBackoff.Wait(ctx, failures); err != nil {
				return l, err
			}
			continue
		case l.taken:
			r.cfg.Logger.Info("the relay has the lease", "table", r.cfg.Table.Name,
				"owner", wish.owner, "epoch", l.fence.epoch)
			return l, nil
		case l.stream != "" && (l.stream != wish.stream || l.created != wish.created):
			return l, fmt.Errorf("%w: %s@%d, and this is %s@%d (name@creation in ms); use another "+
				"table, or drop %s and its journal if no open unit matters any more",
				ErrOtherStream, l.stream, l.created, wish.stream, wish.created,
				r.cfg.Table.base()+"_lease")
		case waiting != l.owner:
			waiting = l.owner
			r.setOwner(l.owner)
			r.cfg.Logger.Info("another relay has the lease; waiting", "table", r.cfg.Table.Name,
				"owner", l.owner)
		}
		failures = 0
		if err := retry.Wait(ctx, min(r.cfg.Failover/3, time.Second)); err != nil {
			return l, err
		}
	}
}

func (r *Relay) setOwner(owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owner = owner
}

// own runs a session and then gives the lease up.
func (r *Relay) own(ctx context.Context, s store, l lease) error {
	run := newSession(&r.cfg, s, l)
	r.mu.Lock()
	r.session = run
	r.mu.Unlock()
	err := run.run(ctx)
	r.mu.Lock()
	r.session = nil
	r.total.add(&run.intake.counts)
	r.mu.Unlock()
	if errors.Is(err, errLost) {
		return err
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveGrace)
	defer cancel()
	if err := s.leave(leaving, run.fence); err != nil && !errors.Is(err, errLost) {
		r.cfg.Logger.Warn("the lease was not handed over; another relay waits for its end",
			"table", r.cfg.Table.Name, "error", err)
	}
	return err
}

// verdict returns ErrHeld if a relay with Once has left held keys.
func (r *Relay) verdict(ctx context.Context, s store) error {
	held, err := s.held(ctx)
	if err == nil && len(held) > 0 {
		err = fmt.Errorf("%w: %d, the first is %q: %s", ErrHeld, len(held), held[0].Key,
			held[0].Reason)
	}
	return err
}

// created returns the stream's creation time in milliseconds. It retries through outages.
func (r *Relay) created(ctx context.Context) (int64, error) {
	input := streamref.Describe(r.cfg.Producer.Stream)
	for failures := 1; ; failures++ {
		out, err := r.cfg.Producer.Reader.DescribeStreamSummary(ctx, input)
		if err == nil {
			return aws.ToTime(out.StreamDescriptionSummary.StreamCreationTimestamp).UnixMilli(), nil
		}
		if !awserr.Kinesis.Transient(err) {
			return 0, fmt.Errorf("describe the stream: %w", err)
		}
		if failures == 1 {
			r.cfg.Logger.Warn("the stream does not answer; trying again", "error", err)
		}
		if err := databaseBackoff.Wait(ctx, failures); err != nil {
			return 0, err
		}
	}
}
