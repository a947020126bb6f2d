package runnel_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/keytable"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/proxy"
	"github.com/runnel-stream/runnel/reshard"
	"github.com/runnel-stream/runnel/server"
	"github.com/runnel-stream/runnel/sink/archive"
)

// TestValidate checks that every Validate reports all faults at once, in one form: a line for each
// fault, with the package, the field, its value and the fix.
func TestValidate(t *testing.T) {
	form := regexp.MustCompile(`^([a-z]+): [A-Z][A-Za-z.]* (is|are|has|and) .*: ` +
		`(want|leave) .*[^.]$`)
	for name, c := range map[string]struct {
		config interface{ Validate() error }
		faults int
	}{
		"archive": {archive.Config{
			Every: 1, Size: -1, Whole: -1, WriterID: strings.Repeat("w", 300),
		}, 5},
		"archive options": {archive.VerifyOptions{Source: "a", Key: "k", Examples: -1}, 2},
		"keytable":        {keytable.Config{Expiry: 1, Interval: 1, CallTimeout: -1}, 5},
		"lease":           {lease.Config{CallTimeout: -1}, 4},
		"plan":            {plan.Goal{MergeUnder: 1, MinShards: -1}, 3},
		"producer": {producer.Config{
			MaxInFlight: -1, MaxUnitBytes: -1, Linger: -1, CallTimeout: time.Hour, GiveUpAfter: -1,
		}, 7},
		"proxy": {proxy.Config{
			PutWait: time.Hour, MaxStreams: -1, MaxBytes: 1, ShutdownTimeout: -1,
		}, 5},
		"reshard": {reshard.Policy{SplitAbove: -1, MinShards: -1, MaxSteps: -1}, 4},
		"server": {server.Config{
			Account: "1", Region: "x y", MaxBodies: 1, SyncInterval: -1, ShutdownTimeout: -1,
			Streams: []server.StreamSpec{{}},
		}, 6},
	} {
		err := c.config.Validate()
		if err == nil {
			t.Errorf("%s: no fault", name)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != c.faults {
			t.Errorf("%s: %d faults, want %d:\n%v", name, len(lines), c.faults, err)
		}
		for _, line := range lines {
			if match := form.FindStringSubmatch(line); match == nil ||
				!strings.HasPrefix(name, match[1]) {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}
