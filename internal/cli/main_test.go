package cli_test

import (
	"log"
	"os"
	"testing"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/internal/seam"
)

// sqlFile is the variable that makes the test binary a small sqlite3: it names the database, and the
// argument has the statements.
const sqlFile = "RUNNEL_TEST_SQL_FILE"

func TestMain(m *testing.M) {
	if err := seam.FromEnv(); err != nil {
		panic(err)
	}
	if file := os.Getenv(sqlFile); file != "" { // README's sqlite3
		if err := clitest.SQL(os.Stdout, file, os.Args[1]); err != nil {
			log.Fatal(err)
		}
		return
	}
	clitest.Main(m)
}

// TestScripts runs testdata/script: the command line as its users meet it.
func TestScripts(t *testing.T) {
	t.Parallel()
	clitest.Scripts(t)
}
