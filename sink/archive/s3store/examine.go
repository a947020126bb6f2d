package s3store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel/sink/archive"
)

// Examination is the behaviour of a store under the calls of an archive.
type Examination struct {
	Races   int `json:"races"`   // eight creates of one object at once
	One     int `json:"one"`     // races with one winner, as it must be
	Several int `json:"several"` // races with more: records would be lost and doubled
	None    int `json:"none"`    // races without one: a commit would wait for ever
	// Foreign is the number of races with another object than the winner's.
	Foreign int `json:"foreign"`
	// Unread is the number of objects that a read, straight after their create, did not find.
	Unread int `json:"unread"`
	// Unlisted is the number of objects that a listing at the end did not have.
	Unlisted int `json:"unlisted"`
	// Left is the number of objects that stay, since the role may not delete them. An archive needs
	// no right to.
	Left int `json:"left"`
}

// OK reports whether an archive may rely on the store.
func (e Examination) OK() bool { return e.One == e.Races && e.Foreign+e.Unread+e.Unlisted == 0 }

const examined = "runnel-doctor"

// deleter is the part of the S3 client that removes the objects of an examination.
type deleter interface {
	DeleteObject(
		context.Context, *s3.DeleteObjectInput, ...func(*s3.Options),
	) (*s3.DeleteObjectOutput, error)
}

// Examine races creates of fresh objects below runnel-doctor/, reads and lists them, and deletes
// them where it may. An error means that the store could not be examined.
func (s *Store) Examine(ctx context.Context, races int) (e Examination, err error) {
	e.Races = races
	folder := examined + "/" + rand.Text()
	var names []string
	defer func() { e.Left = s.remove(ctx, names) }()
	for race := range races {
		base := fmt.Sprintf("%06d", race)
		names = append(names, folder+"/"+base)
		if err := s.examine(ctx, folder+"/"+base, &e); err != nil {
			return e, err
		}
	}
	listing, err := s.List(ctx, folder)
	if err != nil {
		return e, err
	}
	e.Unlisted = races - e.Unread - len(listing.Objects)
	return e, nil
}

// examine races the creates of one object.
func (s *Store) examine(ctx context.Context, name string, e *Examination) error {
	var mu sync.Mutex
	var winners []string
	var group errgroup.Group
	for n := range racers {
		group.Go(func() error {
			data := fmt.Sprintf("racer %d\n", n)
			err := s.PutIfAbsent(ctx, name, []byte(data))
			switch {
			case err == nil:
				mu.Lock()
				defer mu.Unlock()
				winners = append(winners, data)
			case errors.Is(err, archive.ErrObjectExists):
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	switch len(winners) {
	case 0:
		e.None++
	case 1:
		e.One++
	default:
		e.Several++
	}
	body, err := s.Get(ctx, name)
	if errors.Is(err, archive.ErrObjectNotFound) {
		e.Unread++
		return nil
	}
	if err != nil {
		return err
	}
	data, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		return err
	}
	if len(winners) == 1 && !bytes.Equal(data, []byte(winners[0])) {
		e.Foreign++
	}
	return nil
}

// remove deletes objects, and returns how many stay.
func (s *Store) remove(ctx context.Context, names []string) int {
	client, ok := s.cfg.S3.(deleter)
	if !ok {
		return len(names)
	}
	var left atomic.Int64
	var group errgroup.Group
	group.SetLimit(racers)
	for _, name := range names {
		group.Go(func() error {
			ctx, cancel := s.call(ctx, 0)
			defer cancel()
			_, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{
				Bucket: &s.cfg.Bucket, Key: aws.String(s.key(name)),
			})
			if err != nil {
				left.Add(1)
			}
			return nil
		})
	}
	_ = group.Wait() // no error is returned
	return int(left.Load())
}

// WriteText writes the examination for people.
func (e Examination) WriteText(w io.Writer) error {
	var text strings.Builder
	line := func(what string, bad int, good, why string) {
		verdict := "ok, " + good
		if bad > 0 {
			verdict = fmt.Sprintf("NO, %d of %d: %s", bad, e.Races, why)
		}
		fmt.Fprintf(&text, "%-24s %s\n", what, verdict)
	}
	line("eight creates at once", e.Several, fmt.Sprintf("one wins in each of %d races", e.Races),
		"several win: the store ignores If-None-Match, and records would be lost and doubled")
	line("a create succeeds", e.None, "none is refused without cause",
		"all are refused, although the object was new")
	line("the winner's bytes", e.Foreign, "they are in the object",
		"the object has another one's bytes")
	line("a read after a create", e.Unread, "it finds the object", "it does not find the object")
	line("a listing", e.Unlisted, "it has every object", "it lacks objects")
	if e.Left > 0 {
		fmt.Fprintf(&text, "%-24s %d objects stay below %s/: the role may not delete, which an "+
			"archive does not need\n", "cleaning up", e.Left, examined)
	}
	verdict := "ok: an archive may rely on this store"
	if !e.OK() {
		verdict = "NOT OK: an archive may not rely on this store"
	}
	fmt.Fprintf(&text, "%-24s %s\n", "verdict", verdict)
	_, err := io.WriteString(w, text.String())
	return err
}
