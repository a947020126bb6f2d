package keys_test

import (
	"testing"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

// TestScripts runs testdata/script: the keys commands as their users meet them.
func TestScripts(t *testing.T) { clitest.Scripts(t) }
