package putlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/runnel-stream/runnel/internal/putlog"
	"github.com/runnel-stream/runnel/internal/vfs"
)

func refused(number uint64, reason string) putlog.SettledUnit {
	end := settled(number, putlog.Undelivered)
	end.Reason = reason
	return end
}

// Refused records are kept over runs and rewrites, also of a load that is complete, until they are
// forgotten; none of them is put again.
func TestRefused(t *testing.T) {
	fs := newFS(t)
	j := open(t, fs)
	readTo(t, j, 0, 3)
	freeze(t, j, unit(1, 0, 2), unit(2, 1))
	j.Settled([]putlog.SettledUnit{refused(1, "no"), settled(2, putlog.Stored)})
	readTo(t, j, 3, 4)
	j.Refuse([]uint64{3}, "too large")
	want := "[{0 no} {2 no} {3 too large}]"
	for run := range 4 {
		if got := fmt.Sprint(j.Refused()); got != want {
			t.Fatalf("run %d: refused %s, want %s", run, got, want)
		}
		if run == 2 { // a complete load keeps them too
			if err := j.Finish(); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if j = open(t, fs); j.Done() != (run >= 2) {
			t.Fatalf("run %d: done is %v", run, j.Done())
		}
		if !j.Done() && len(readTo(t, j, 0, 4)) > 0 {
			t.Error("a refused record is put again")
		}
	}
	if err := j.Forget(j.Refused()[:2]); err != nil {
		t.Fatal(err)
	}
	_ = j.Close()
	j = open(t, fs)
	if got := fmt.Sprint(j.Refused()); got != "[{3 too large}]" || !j.Done() {
		t.Errorf("after Forget: %s, done %v", got, j.Done())
	}
	_ = j.Close()
}

// A journal of an earlier version has the end of the unit without its reason.
func TestRefusedByAnEarlierVersion(t *testing.T) {
	fs := newFS(t)
	j := open(t, fs)
	readTo(t, j, 0, 1)
	freeze(t, j, unit(1, 0))
	j.Settled([]putlog.SettledUnit{refused(1, "the reason")})
	_ = j.Close()
	content := read(t, fs)
	at := bytes.LastIndex(content, []byte("\xf1put"))
	if !bytes.Contains(content[at:], []byte("the reason")) {
		t.Fatal("the last frame has not the reason")
	}
	if err := fs.Remove(name); err != nil {
		t.Fatal(err)
	}
	write(t, fs, content[:at])
	j = open(t, fs)
	if got := fmt.Sprint(j.Refused()); got != "[{0 }]" {
		t.Errorf("refused %s", got)
	}
	_ = j.Close()
}

// Forget returns a write error: the caller then reports that the state still has the records.
func TestForgetOnABrokenDisk(t *testing.T) {
	fail := false
	fs := vfs.Inject(newFS(t), func(op vfs.Op) error {
		if fail && op.Kind == vfs.OpSync {
			return vfs.ErrNoSpace
		}
		return nil
	})
	j := open(t, fs)
	readTo(t, j, 0, 1)
	j.Refuse([]uint64{0}, "no")
	if err := j.Finish(); err != nil {
		t.Fatal(err)
	}
	fail = true
	if err := j.Forget(j.Refused()); !errors.Is(err, vfs.ErrNoSpace) {
		t.Error(err)
	}
	_ = j.Close()
}
