package consumer

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
)

// The filter of a reading that a seek ended does not count for the next one.
func TestFilterOfBeforeASeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := heldFor(0, 0)
		k.know(new(aggregate.Filter), 0)
		if k.knows() == nil {
			t.Fatal("the filter is not known")
		}
		k.seek(runnel.Position{Sequence: "7"}, time.Time{})
		k.know(new(aggregate.Filter), 0)
		if k.knows() != nil {
			t.Error("the filter of the former reading counts")
		}
		k.know(new(aggregate.Filter), 1)
		if k.knows() == nil {
			t.Error("the filter of the new reading does not count")
		}
	})
}

// A shard that is sought at the moment at which its ErrorPolicy stops it goes on.
func TestSeekBeforeTheHalt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c control
		if err := c.seek(runnel.Start(), func() {}); err != nil {
			t.Fatal(err)
		}
		c.halt(&haltError{})
		if !c.awaitResume(t.Context(), nil) {
			t.Error("it stays stopped")
		}
		if _, sought := c.begin(nil, new(progress)); !sought {
			t.Error("the seek is lost")
		}
	})
}

// A seek at the last moment of a reading begins another one. After the end it is refused.
func TestSeekAtTheLastMoment(t *testing.T) {
	var c control
	if err := c.seek(runnel.Start(), func() {}); err != nil {
		t.Fatal(err)
	}
	if c.end() {
		t.Error("the shard's reading is over, and the seek is lost")
	}
	if _, sought := c.begin(func(error) {}, new(progress)); !sought || !c.end() {
		t.Error("the reading that was sought does not begin, or does not end")
	}
	err := c.seek(runnel.Start(), func() { t.Error("the row goes back") })
	if !errors.Is(err, ErrNotHeld) {
		t.Errorf("a seek after the end: %v", err)
	}
}
