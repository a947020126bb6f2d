package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/ndjson"
)

// A file in the place of a data directory or an archive is bad input, not a failure of the disk.
func TestVerdictsOnAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"fsck", "verify"} {
		status := Main(t.Context(), []string{command, file}, Streams{
			In: strings.NewReader(""), Out: io.Discard, Err: io.Discard,
		})
		if status != exit.StatusUsage {
			t.Errorf("%s: status %d", command, status)
		}
	}
}

// A command that cannot write its result ends with 3: it may have changed something before.
func TestResultsThatCannotBeWritten(t *testing.T) {
	for _, args := range []string{
		"version", "keys hash a", "keys nth --count 2 --output json", "verify " + t.TempDir(),
		"verify --output json " + t.TempDir(), "completion bash",
	} {
		var said strings.Builder
		status := Main(t.Context(), strings.Fields(args), Streams{
			In: strings.NewReader(""), Out: fullDisk{}, Err: &said,
		})
		if status != exit.StatusOutside || !strings.Contains(said.String(), "no space") ||
			strings.Contains(said.String(), "--help") {
			t.Errorf("%s: status %d, %s", args, status, said.String())
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// The generator gives the same events for a seed, in each repository a creation first and
// nothing after a destruction but another creation, and no repository more than 2 %.
func TestRepositoryEvents(t *testing.T) {
	const n = 50_000
	perKey, alive := map[string]int{}, map[string]bool{}
	var first []event
	for e := range repositoryEvents(7, n) {
		first = append(first, e)
		perKey[e.key]++
		kind := kindOf(t, e)
		if (kind == "create") == alive[e.key] {
			t.Fatalf("%s of %s, which is there: %v", kind, e.key, alive[e.key])
		}
		alive[e.key] = kind != "destroy"
	}
	hottest := 0
	for _, count := range perKey {
		hottest = max(hottest, count)
	}
	if len(first) != n || hottest > n/50 || hottest < n/100 || len(perKey) < n/20 {
		t.Errorf("%d events, %d keys, the hottest has %d", len(first), len(perKey), hottest)
	}
	i := 0
	for e := range repositoryEvents(7, n) {
		if string(e.data) != string(first[i].data) {
			t.Fatalf("event %d differs in the second run", i)
		}
		i++
	}
}

func kindOf(t *testing.T, e event) string {
	t.Helper()
	field, err := ndjson.ParseField("type")
	if err != nil {
		t.Fatal(err)
	}
	kind, err := field.Of(e.data)
	if err != nil {
		t.Fatal(err)
	}
	return kind
}
