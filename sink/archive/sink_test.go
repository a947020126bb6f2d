package archive_test

import (
	"errors"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/sinktest"
)

// TestConformance runs the suite over a folder in memory.
func TestConformance(t *testing.T) {
	sinktest.Run(t, func(*testing.T) sinktest.Target { return newTarget(1, vfs.NewMem()) })
}

// TestConformanceOS simulates over the operating system's files.
func TestConformanceOS(t *testing.T) {
	dir := t.TempDir()
	target := newTarget(1, nil)
	target.open = func() archive.Store {
		store, err := archive.NewDirStore(dir)
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	for seed := range uint64(3) {
		plan := sinktest.Plan{Seed: seed, Records: 4, Stream: "s" + string('a'+rune(seed))}
		if _, err := sinktest.Simulate(t.Context(), target, plan); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestSimulation has three writers alive on every shard, answers lost in the store and above
// it, puts that come late, stale checkpoints and power failures: nothing lost or doubled.
func TestSimulation(t *testing.T) {
	var total sinktest.Stats
	seeds := uint64(80 * sinktest.Soak())
	for seed := range seeds {
		target := newTarget(seed, vfs.NewCrashable())
		target.faults = true
		stats, err := sinktest.Simulate(t.Context(), crashing{target}, sinktest.Plan{
			Seed: seed, Records: 15, Tolerate: isInjected,
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		report, err := archive.NewReader(target.open()).Verify(t.Context(), archive.VerifyOptions{})
		if err != nil || !report.OK() {
			t.Fatalf("seed %d: %v\n%+v", seed, err, report)
		}
		total.Moved += stats.Moved
		total.Lost += stats.Lost
		total.Crashes += stats.Crashes
		total.Tolerated += stats.Tolerated
		total.Doubles += stats.Doubles
		total.Empty += stats.Empty
		total.Inherited += stats.Inherited
	}
	t.Logf("soak: %d seeds, %d crashes; %+v", seeds, total.Crashes, total)
	if total.Moved == 0 || total.Crashes == 0 || total.Tolerated == 0 || total.Doubles == 0 ||
		total.Empty == 0 || total.Inherited == 0 {
		t.Error("the simulation has not met what it is for")
	}
}

// TestSimulationControls shows that the simulation can fail: a store that breaks its contract
// does damage.
func TestSimulationControls(t *testing.T) {
	for name, broken := range map[string]func(*target){
		"a put replaces":             func(d *target) { d.breakStore = d.replaces },
		"another's taken for ours":   func(d *target) { d.breakStore = claims },
		"the data is not synced":     func(d *target) { d.lie = vfs.OpSync },
		"the folders are not synced": func(d *target) { d.lie = vfs.OpSyncDir },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(100) {
				target := newTarget(seed, vfs.NewCrashable())
				target.faults = true
				broken(target)
				_, err := sinktest.Simulate(t.Context(), crashing{target}, sinktest.Plan{
					Seed: seed, Records: 15, Tolerate: isInjected,
				})
				if err != nil {
					t.Logf("found after %d runs: %v", seed, err)
					return
				}
			}
			t.Error("it has done no damage")
		})
	}
}

var errInjected = errors.New("injected")

func isInjected(err error) bool { return errors.Is(err, errInjected) }
