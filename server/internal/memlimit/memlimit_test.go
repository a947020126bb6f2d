package memlimit

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

// TestLimit goes up to the limit by each of the two sums.
func TestLimit(t *testing.T) {
	files := int64(40)
	l := New(100, func() int64 { return files })
	if err := l.Take(60); err != nil {
		t.Fatalf("60 beside 40: %v", err)
	}
	if err := l.Full(); !errors.Is(err, ErrFull) {
		t.Errorf("100 of 100 are in use, and Full returns %v", err)
	}
	if err := l.Take(1); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "--memory") {
		t.Errorf("1 more: %v", err)
	}
	if l.Used() != 100 {
		t.Errorf("after a refusal %d are in use, want 100", l.Used())
	}
	l.GiveBack(60)
	files = 99
	if err := l.Take(1); err != nil {
		t.Errorf("1 beside 99 in files: %v", err)
	}
	if text := l.Warning(); !strings.Contains(text, "nearly full") {
		t.Errorf("100 of 100 are in use, and the warning is %q", text)
	}
	if files = 50; l.Warning() != "" {
		t.Errorf("half is in use, and the warning is %q", l.Warning())
	}
}

// TestLimitTogether checks that calls at once do not pass the limit together: a call counts from
// before it looks at the sum.
func TestLimitTogether(t *testing.T) {
	var calls atomic.Int64
	look, looked := make(chan struct{}), make(chan struct{})
	l := New(10, func() int64 {
		if calls.Add(1) == 1 {
			close(look)
			<-looked
		}
		return 0
	})
	first := make(chan error)
	go func() { first <- l.Take(7) }()
	<-look
	if err := l.Take(7); !errors.Is(err, ErrFull) {
		t.Errorf("7 of 10 beside a call that is about to take 7: %v", err)
	}
	close(looked)
	if err := <-first; err != nil || l.Used() != 7 {
		t.Errorf("the first call: %v, and %d are in use, want 7", err, l.Used())
	}
}

// TestNoLimit checks that a nil limit never refuses.
func TestNoLimit(t *testing.T) {
	var l *Limit
	if err := errors.Join(l.Take(1<<50), l.Full()); err != nil {
		t.Error(err)
	}
	l.GiveBack(1 << 50)
	if l.Warning() != "" {
		t.Error(l.Warning())
	}
}
