package cli_test

import (
	"testing"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/internal/seam"
)

func TestMain(m *testing.M) {
	if err := seam.FromEnv(); err != nil {
		panic(err)
	}
	clitest.Main(m)
}

// TestScripts runs testdata/script: the command line as its users meet it.
func TestScripts(t *testing.T) { clitest.Scripts(t) }
