package demo_test

import (
	"testing"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

// TestScripts runs testdata/script: the demo as its users meet it.
func TestScripts(t *testing.T) { clitest.Scripts(t) }
