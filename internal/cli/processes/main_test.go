package processes_test

import (
	"log"
	"os"
	"testing"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/internal/seam"
)

// programs are other programs that the test binary can be, by its first argument.
var programs = map[string]func(args []string) error{}

func TestMain(m *testing.M) {
	if err := seam.FromEnv(); err != nil {
		panic(err)
	}
	if len(os.Args) > 1 && programs[os.Args[1]] != nil {
		if err := programs[os.Args[1]](os.Args[2:]); err != nil {
			log.Fatal(err)
		}
		return
	}
	clitest.Main(m)
}
