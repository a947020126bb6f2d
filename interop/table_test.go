package interop

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the table of docs/interop.md")

// These are the values of the column "does".
const (
	polling = "polling"
	fanOut  = "fan-out"
	both    = "polling, fan-out"
	writes  = "writes over TLS"
	ofKPL   = "polling, the KPL's aggregates"
	opens   = "opens runnel's aggregates"
	packs   = "packs aggregates for runnel"
)

// oneCase is a row of the table in docs/interop.md. Its version is the match of pattern in file.
type oneCase struct {
	client, does  string
	software      string
	file, pattern string // the file that pins the version, and an expression that finds it
}

func boto3(client string) oneCase {
	return oneCase{client, both, "boto3", "python/requirements.txt", `boto3==(\S+)`}
}

func kcl(version, does string) oneCase {
	return oneCase{
		"KCL " + version, does, "Java KCL", "install",
		"(" + regexp.QuoteMeta(version) + ")",
	}
}

// aggregator is awslabs' library, in two languages.
func aggregator(client, does string) oneCase {
	if client == "python" {
		return oneCase{
			client, does, "aws_kinesis_agg", "python/requirements.txt",
			`aws_kinesis_agg==(\S+)`,
		}
	}
	return oneCase{
		client, does, "aws-kinesis-agg", "javascript/package.json",
		`aws-kinesis-agg": "([^"]+)`,
	}
}

// cases are all cases of RUNNEL_INTEROP=all, in the table's order.
var cases = []oneCase{
	{"go", both, "AWS SDK for Go v2", "../go.mod", `service/kinesis v(\S+)`},
	boto3("python"),
	boto3("python over TLS"),
	{
		"javascript", both, "AWS SDK for JavaScript v3", "javascript/package.json",
		`client-kinesis": "([^"]+)`,
	},
	{
		"java", both, "AWS SDK for Java v2", "java/pom.xml",
		`<artifactId>kinesis</artifactId>\s*<version>([^<]+)`,
	},
	{"awscli", polling, "AWS CLI", "install", `aws-cli/(2)`},
	kcl("3.5.1", polling),
	kcl("3.5.1", fanOut),
	kcl("2.7.2", polling),
	kcl("2.7.2", fanOut),
	{"KPL", writes, "KPL", "kpl/pom.xml", `producer</artifactId>\s*<version>([^<]+)`},
	kcl("3.5.1", ofKPL),
	kcl("3.5.1", opens),
	kcl("2.7.2", opens),
	aggregator("python", opens),
	aggregator("javascript", opens),
	aggregator("python", packs),
	aggregator("javascript", packs),
}

// row is the result of a case.
type row struct {
	records  int           // the records that were put and read
	again    int           // the records that were read more than once
	recovery time.Duration // from a worker's kill until all was read; 0 without a kill
}

var reported struct {
	sync.Mutex
	rows map[string]row
}

// report adds a case's result at its end. A failed case has no row, and then the run writes no
// table.
func report(t *testing.T, client, does string, r row) {
	t.Helper()
	if t.Failed() {
		return
	}
	reported.Lock()
	defer reported.Unlock()
	if reported.rows == nil {
		reported.rows = map[string]row{}
	}
	reported.rows[client+" "+does] = r
}

// TestMain writes the table after a run of all cases in which every test passed.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 && *update {
		if err := writeTable(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

const (
	document   = "../docs/interop.md"
	tableStart = "<!-- The run writes this table: make interop-all. -->\n"
	tableEnd   = "<!-- The table's end. -->\n"
)

func writeTable() error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), tableStart)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		return fmt.Errorf("%s has no place for its table", document)
	}
	table, err := tableOf(reported.rows)
	if err != nil {
		return err
	}
	return os.WriteFile(document, []byte(before+tableStart+table+tableEnd+after), 0o600)
}

// tableOf returns the table of a whole run.
func tableOf(rows map[string]row) (string, error) {
	var b strings.Builder
	b.WriteString("| client | software | version | does | records | read again | " +
		"kill to all read | result |\n|---|---|---|---|---|---|---|---|\n")
	for _, c := range cases {
		r, ran := rows[c.client+" "+c.does]
		if !ran {
			return "", fmt.Errorf("%s, %s has not run: the table needs RUNNEL_INTEROP=all",
				c.client, c.does)
		}
		version, err := c.version()
		if err != nil {
			return "", err
		}
		recovery := "-"
		if r.recovery > 0 {
			recovery = fmt.Sprintf("%.1f s", r.recovery.Seconds())
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %d | %d | %s | ok |\n", c.client, c.software, version,
			c.does, r.records, r.again, recovery)
	}
	return b.String(), nil
}

func (c oneCase) version() (string, error) {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(c.pattern).FindStringSubmatch(string(text))
	if found == nil {
		return "", fmt.Errorf("%s: %s has no version %s", c.client, c.file, c.pattern)
	}
	return found[1], nil
}

// TestTable checks that docs/interop.md has a row of every case, and that every case has a version.
func TestTable(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if _, err := c.version(); err != nil {
			t.Error(err)
		}
		pattern := fmt.Sprintf(`(?m)^\| %s \| %s \| [^|]+ \| %s \|.* ok \|$`,
			regexp.QuoteMeta(c.client), regexp.QuoteMeta(c.software), regexp.QuoteMeta(c.does))
		if !*update && !regexp.MustCompile(pattern).Match(text) {
			t.Errorf("%s has no row of %s, %s: make interop-all writes it", document, c.client, c.does)
		}
	}
	if _, err := tableOf(nil); err == nil {
		t.Error("tableOf accepts a run without results")
	}
}
