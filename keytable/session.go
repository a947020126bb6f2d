package keytable

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/internal/awserr"
)

var (
	// ErrAlreadyJoined is wrapped by Join for a Table that has a session already.
	ErrAlreadyJoined = errors.New("the table has a session already")
	// ErrSessionClosed is wrapped by Use after Close.
	ErrSessionClosed = errors.New("the session is closed")
)

// Session is a process that puts records under the keys of a table. It renews a row of the table
// that says up to which version it has drained the moving names: none of their records is in flight
// under the old key, and no new one starts, because Use waits. A Move continues when all sessions
// have drained.
//
// A session that cannot renew its row stops returning keys half of Config.Expiry after its last
// renewal. A Move declares it dead after a whole Expiry without a renewal. Both use their own
// monotonic clock. So the records in flight have half of Expiry to end.
//
// It implements producer.Keys, and is safe for concurrent use.
type Session struct {
	table *Table
	life  context.Context //nolint:containedctx // the session's own life, ended by Close
	end   context.CancelFunc
	wake  chan struct{} // renews at once; capacity 1
	loop  sync.WaitGroup

	number, beat int64 // of the row; owned by the loop

	// Guarded by the table's mu.
	until  time.Time // Use returns keys before it
	failed error     // the error of the last renewal
	closed bool
	uses   int // records in flight
}

// Join begins the session of a table; a Table has one at a time, else the error wraps
// ErrAlreadyJoined. The calls of the session use the values of ctx. The end of ctx does not end the
// session; Close does.
func (t *Table) Join(ctx context.Context) (*Session, error) {
	s := &Session{table: t, wake: make(chan struct{}, 1)}
	t.mu.Lock()
	other := t.mu.session
	if other == nil {
		t.mu.session = s
	}
	t.mu.Unlock()
	if other != nil {
		return nil, t.wrap("join", ErrAlreadyJoined)
	}
	if err := s.renew(ctx); err != nil {
		s.leave()
		return nil, err
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.loop.Go(s.run)
	return s, nil
}

// Use returns the explicit hash key of a name, in decimal, for a record that is about to be put; a
// new name gets a key as by Table.Key. Call done once, when the record has its result. Use waits
// while the key of the name moves, and while the session cannot be renewed, until ctx ends.
//
// Errors wrap ErrInvalidName, allocate.ErrSpaceFull, ErrSessionClosed, the cause of ctx, or an
// error of DynamoDB.
func (s *Session) Use(
	ctx context.Context, name string,
) (explicitHashKey string, done func(), err error) {
	for {
		hash, done, wait, err := s.use(name)
		switch {
		case err != nil || done != nil:
			return hash, done, err
		case wait == nil:
			if _, err := s.table.Key(ctx, name); err != nil {
				return "", nil, err
			}
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return "", nil, s.waited(name, context.Cause(ctx))
		}
	}
}

// use returns the results of Use, or a channel to wait for. For a name without a key it returns
// neither.
func (s *Session) use(name string) (hash string, done func(), wait <-chan struct{}, err error) {
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.mu.state.names[name]
	switch {
	case s.closed:
		return "", nil, nil, t.wrap("use", fmt.Errorf("%q: %w", name, ErrSessionClosed))
	case !time.Now().Before(s.until):
		return "", nil, t.mu.changed, nil
	case e == nil:
		return "", nil, nil, nil
	case e.To != nil:
		return "", nil, t.mu.changed, nil
	}
	if e.done == nil {
		e.done = func() { s.done(e) }
	}
	e.uses++
	s.uses++
	return e.text, e.done, nil, nil
}

// done ends a use.
func (s *Session) done(e *entry) {
	t := s.table
	t.mu.Lock()
	e.uses--
	s.uses--
	drained := e.uses == 0 && e.To != nil
	t.mu.Unlock()
	if drained {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// waited returns the error of a Use that waited until ctx ended.
func (s *Session) waited(name string, cause error) error {
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.failed != nil {
		return t.wrap("use", fmt.Errorf("%q: %w, while the session could not be renewed: %w",
			name, cause, s.failed))
	}
	return t.wrap("use", fmt.Errorf("%q: %w, while its key was moved", name, cause))
}

// run renews the session until Close.
func (s *Session) run() {
	timer := time.NewTimer(s.table.cfg.Interval)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.wake:
		case <-s.life.Done():
			return
		}
		err := s.renew(s.life)
		s.table.mu.Lock()
		s.failed = err
		s.table.mu.Unlock()
		timer.Reset(s.table.cfg.Interval)
	}
}

// renew reads the newest changes, and writes the drained version into the row of the session. If
// the row is gone, a Move has declared the session dead: it then gets a new row, and returns no
// keys until it has read the changes since.
func (s *Session) renew(ctx context.Context) error {
	t := s.table
	began := time.Now()
	if s.number == 0 {
		if err := s.enter(ctx); err != nil {
			return t.wrap("begin the session", err)
		}
	}
	if err := t.Refresh(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	drained := t.mu.state.drained()
	t.mu.Unlock()
	s.beat++
	err := s.announce(ctx, drained)
	if _, dead := awserr.ConditionFailed(err); dead {
		s.number = 0
		s.extend(time.Time{})
	}
	if err != nil {
		return t.wrap("renew the session", err)
	}
	s.extend(began.Add(t.cfg.Expiry / 2))
	return nil
}

// enter creates the row of the session.
func (s *Session) enter(ctx context.Context) error {
	t := s.table
	ctx, cancel := t.call(ctx)
	defer cancel()
	number := 1 + rand.Int64N(1<<62)
	_, err := t.cfg.DynamoDB.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:           &t.cfg.Table,
		Item:                s.row(number, -1),
		ConditionExpression: aws.String("attribute_not_exists(" + attrID + ")"),
	})
	// The row exists if an attempt without an answer has made it.
	if _, exists := awserr.ConditionFailed(err); err != nil && !exists {
		return err
	}
	s.number = number
	return nil
}

func (s *Session) row(number, drained int64) item {
	i := primary(idSession, number)
	i[attrBeat], i[attrDrained] = num(s.beat), num(drained)
	i[attrExpiry] = num(s.table.cfg.Expiry.Milliseconds())
	return i
}

// announce renews the row, if it exists, with the drained version.
func (s *Session) announce(ctx context.Context, drained int64) error {
	t := s.table
	ctx, cancel := t.call(ctx)
	defer cancel()
	_, err := t.cfg.DynamoDB.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:           &t.cfg.Table,
		Item:                s.row(s.number, drained),
		ConditionExpression: aws.String("attribute_exists(" + attrID + ")"),
	})
	return err
}

// extend sets the time until which Use may return keys, and wakes the calls that waited for it.
func (s *Session) extend(until time.Time) {
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	waited := !time.Now().Before(s.until)
	s.until = until
	if waited {
		t.broadcast()
	}
}

// Close ends the session; close the producer first. With records in flight, its error wraps
// ErrNameInUse and it leaves the row, so that a Move waits until the row expires. A second Close
// does nothing.
func (s *Session) Close(ctx context.Context) error {
	t := s.table
	t.mu.Lock()
	closed := s.closed
	s.closed = true
	t.broadcast()
	t.mu.Unlock()
	if closed {
		return nil
	}
	s.end()
	s.loop.Wait()
	uses := s.leave()
	switch {
	case uses > 0:
		return t.wrap("close the session", fmt.Errorf("%w: %d", ErrNameInUse, uses))
	case s.number == 0:
		return nil
	}
	return t.wrap("close the session", t.delete(ctx, primary(idSession, s.number), nil))
}

// leave lets another session join, and returns the number of records in flight.
func (s *Session) leave() int {
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.session = nil
	for _, e := range t.mu.state.names {
		e.done = nil // of this session
	}
	return s.uses
}

// delete deletes an item; if beat is not nil, only if it is the beat of the item.
func (t *Table) delete(ctx context.Context, key item, beat types.AttributeValue) error {
	ctx, cancel := t.call(ctx)
	defer cancel()
	in := &dynamodb.DeleteItemInput{TableName: &t.cfg.Table, Key: key}
	if beat != nil {
		in.ConditionExpression = aws.String(attrBeat + " = :beat")
		in.ExpressionAttributeValues = item{":beat": beat}
	}
	_, err := t.cfg.DynamoDB.DeleteItem(ctx, in)
	if _, renewed := awserr.ConditionFailed(err); renewed {
		return nil
	}
	return err
}
