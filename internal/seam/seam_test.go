package seam_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
)

func TestFromEnv(t *testing.T) {
	if seam.H() != 5*time.Minute {
		t.Fatalf("H is %v without the variable", seam.H())
	}
	if apart := time.Since(seam.Wall()); apart < -time.Second || apart > time.Second {
		t.Fatalf("Wall is %v apart from the system's clock", apart)
	}
	for _, bad := range []string{"x", "-1s", "0s", "6m"} {
		t.Setenv(seam.EnvH, bad)
		if seam.FromEnv() == nil {
			t.Errorf("%s=%s is taken", seam.EnvH, bad)
		}
	}
	file := filepath.Join(t.TempDir(), "clock")
	t.Setenv(seam.EnvH, "7s")
	t.Setenv(seam.EnvClock, file)
	if err := seam.FromEnv(); err != nil {
		t.Fatal(err)
	}
	if seam.H() != 7*time.Second {
		t.Errorf("H is %v", seam.H())
	}
	for _, c := range []struct {
		text string
		want time.Duration
	}{{"", 0}, {"15m\n", 15 * time.Minute}, {"-1h", -time.Hour}, {"25h passed", 25 * time.Hour}, {"soon", 0}} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		apart := time.Until(seam.Wall()) - c.want
		passed := strings.HasSuffix(c.text, "passed")
		if apart < -time.Second || apart > time.Second || (seam.Passed() == c.want) != passed &&
			c.want != 0 {
			t.Errorf("with %q in the file, Wall is %v off", c.text, apart)
		}
	}
}

// SetH changes H until the end of its test.
func TestSetH(t *testing.T) {
	before := seam.H()
	t.Run("short", func(t *testing.T) {
		if seam.SetH(t, time.Second); seam.H() != time.Second {
			t.Errorf("H is %v", seam.H())
		}
	})
	if seam.H() != before {
		t.Errorf("H is %v after the test, want %v", seam.H(), before)
	}
}

// Each option sets its part of the server.
func TestOptions(t *testing.T) {
	var s seam.Server
	disk, faults := vfs.NewMem(), new(fault.Injector)
	for _, option := range []seam.Option{
		seam.OnFS(disk), seam.WithWall(time.Now), seam.WithFaults(faults),
		seam.WithBoot(func() (string, time.Duration) { return "boot", 0 }),
	} {
		option(&s)
	}
	if s.FS != disk || s.Wall == nil || s.Boot == nil || s.Faults != faults {
		t.Errorf("%+v", s)
	}
}
