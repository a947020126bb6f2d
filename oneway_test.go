package runnel_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// oneWay lists tasks that one package does for the client half, and the code that shows them.
// Copies of such code begin to differ.
var oneWay = []struct {
	what, dir string
	code      *regexp.Regexp
	except    map[string]string // files and folders that may have it too, each with its reason
}{
	{
		what: "reads of a shard", dir: "internal/pages",
		code: regexp.MustCompile(`\.(GetShardIterator|GetRecords)\(`),
		except: map[string]string{
			"internal/awscbor":   "the calls of internal/pages pass it",
			"internal/counttest": "the calls of internal/pages pass it in a test",
		},
	},
	{
		what: "error codes of AWS", dir: "internal/awserr",
		code: regexp.MustCompile(
			`types\.(\w+Exception|KMSOptInRequired|RequestLimitExceeded|InternalServerError)\b|` +
				`"\w*(Exception|Throttl\w*|RequestLimitExceeded|SlowDown|ExpiredToken|` +
				`AccessDenied|InternalFailure|InternalServerError|ServiceUnavailable|OptInRequired|` +
				`NotFound|ValidationError|ConditionalCheckFailed|TransactionConflict)"`),
		except: map[string]string{
			"lease/leasetest/memory.go": "a fake of the DynamoDB API returns its errors",
			"internal/wire":             "the answers of an API are encoded, for both halves",
		},
	},
	{
		what: "creations of tables", dir: "internal/dynamotable",
		code: regexp.MustCompile(`\.CreateTable\(`),
	},
	{
		what: "waits on a timer", dir: "internal/retry",
		code: regexp.MustCompile(`time\.(Sleep|After|AfterFunc|Tick|NewTimer|NewTicker)\(`),
		except: map[string]string{
			"consumer/coordinate.go":          eventLoop,
			"consumer/deliver.go":             eventLoop,
			"consumer/fetch.go":               "a page is handed over, or a turn ends",
			"consumer/keeper.go":              eventLoop,
			"consumer/worker.go":              "the shutdown time is one of several ends",
			"keytable/session.go":             eventLoop,
			"producer/producer.go":            eventLoop,
			"internal/budget/budget.go":       "it belongs to both halves",
			"internal/cli/clitest/clitest.go": "a test waits for a process without a context",
			"internal/s3test/gateway.go":      "a test waits for a process without a context",
			"internal/pgtest/pooler.go":       "a test waits for a process without a context",
			"internal/pgtest/postgres.go":     "a test waits for a process without a context",
			"internal/pgtest/wire.go":         "a test's network has a delay",
			"sink/archive/s3store/object.go":  "each read resets the timer of a silent body",
		},
	},
	{
		what: "back-offs", dir: "internal/retry",
		code: regexp.MustCompile(`(?i)(wait|pause|delay|back-?off)\w* (:?= .*<<|\*= ?[23]|\* ?[23]\b)|` +
			`2 ?\* ?(wait|pause|delay|back-?off)|retry(min|max) ?<<`),
	},
}

const eventLoop = "an event loop that other events reset"

// TestOneWay checks that no other package has such code. The server half is left out, because it
// answers these calls and has codes of its own; and so are the programs outside, because they have
// no access to the packages.
func TestOneWay(t *testing.T) {
	found := map[string]bool{} // the rules' packages and exceptions that have the code
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		top, _, _ := strings.Cut(name, "/")
		dir := path.Dir(name)
		if err == nil && entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") ||
			strings.HasSuffix(name, "_test.go") || slices.Contains(outside, top) ||
			isServerHalf(dir) {
			return err
		}
		text, err := os.ReadFile(name)
		code := withoutComments(string(text))
		for _, rule := range oneWay {
			match := rule.code.FindString(code)
			_, exemptFile := rule.except[name]
			_, exemptDir := rule.except[dir]
			switch {
			case match == "":
			case dir == rule.dir:
				found[rule.what] = true
			case exemptFile:
				found[rule.what+name] = true
			case exemptDir:
				found[rule.what+dir] = true
			default:
				t.Errorf("%s has %s: %s belong in %s", name, match, rule.what, rule.dir)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range oneWay {
		if !found[rule.what] {
			t.Errorf("%s has no %s: the rule is out of date", rule.dir, rule.what)
		}
		for _, name := range slices.Sorted(maps.Keys(rule.except)) {
			if !found[rule.what+name] {
				t.Errorf("%s has no %s: the exception is out of date", name, rule.what)
			}
		}
	}
}

var lineComment = regexp.MustCompile(`(?m)(^|\s)//.*$`)

func withoutComments(text string) string { return lineComment.ReplaceAllString(text, "$1") }

// TestOneWayRules shows that each rule sees the code that it forbids.
func TestOneWayRules(t *testing.T) {
	for i, lines := range [][]string{
		{"out, err := c.GetRecords(ctx, in)"},
		{
			"var e *types.ResourceInUseException", `if code == "KMSThrottlingException" {`,
			`"SlowDown"`, "e := new(types.InternalServerError)",
		},
		{"api.CreateTable(ctx, in)"},
		{"case <-time.After(wait):", "timer := time.NewTimer(d)"},
		{"wait = min(2*wait, longest)", "pause := least << attempt", "delay *= 2"},
	} {
		for _, line := range lines {
			if !oneWay[i].code.MatchString(line) {
				t.Errorf("%q passes as no %s", line, oneWay[i].what)
			}
		}
	}
}
