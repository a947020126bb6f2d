package keys_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
)

// With more keys than counters the output marks inexact weights, and leaves out keys whose weight
// is mostly an estimate.
func TestKeysSkewOfMany(t *testing.T) {
	name := filepath.Join(t.TempDir(), "keys.txt")
	var even, uneven strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&even, "key-%d\n", i)
		fmt.Fprintf(&uneven, "key-%d\n", i)
		if i >= 10_000 {
			fmt.Fprintln(&uneven, "late") // all counters are taken
		}
	}
	for _, test := range []struct{ text, want string }{
		{even.String(), "no key stands out: none has more than 0.03% of the load\n"},
		{uneven.String(), "\n 33.33%   ≥ 10,000 records      7  late\n"},
	} {
		if err := os.WriteFile(name, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		status, out, errs := clitest.Run(t.Context(), "keys", "skew", "--shards", "8", name)
		if status != 0 || !strings.HasSuffix(out, test.want) {
			t.Errorf("status %d, want %q\n%s%s", status, test.want, out, errs)
		}
	}
}
