package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// The exit statuses.
const (
	exitOK          = 0
	exitDiffers     = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitInterrupted = 130
)

// cleanupTime bounds the deletion of streams at the end.
const cleanupTime = 5 * time.Minute

// flags is the command line.
type flags struct {
	endpoint, region, profile, only, skip, report, output string
	cost, yes, slow, list                                 bool
}

func main() { os.Exit(conformance(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// conformance is the whole program. The first SIGINT or SIGTERM ends the checks, and the program
// then deletes its streams; the second ends the process at once.
func conformance(ctx context.Context, args []string, out, diagnostics io.Writer) int {
	f, err := parse(args, diagnostics) //nolint:contextcheck // it counts the facts
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return exitOK
	case err != nil:
		_, _ = fmt.Fprintf(diagnostics, "conformance: %v\nTry: go run ./conformance --help\n", err)
		return exitUsage
	}
	only, wrongOnly := regexp.Compile(f.only)
	skip, wrongSkip := regexp.Compile(f.skip)
	if err := errors.Join(wrongOnly, wrongSkip); err != nil {
		_, _ = fmt.Fprintf(diagnostics, "conformance: --only, --skip: %v\n", err)
		return exitUsage
	}
	if f.skip == "" {
		skip = nil
	}
	suite := chosen(only, skip) //nolint:contextcheck // it lists the facts
	if len(suite) == 0 {
		_, _ = fmt.Fprintf(diagnostics, "conformance: no fact matches --only %s; see --list\n",
			f.only)
		return exitUsage
	}
	if f.list {
		return list(suite, f, out)
	}
	t, err := f.target(ctx)
	if err != nil {
		_, _ = fmt.Fprintf(diagnostics, "conformance: %v\n", err)
		return exitUsage
	}
	if f.cost || (t.live && !f.yes) {
		_, _ = io.WriteString(out, cost(t.region))
		if f.cost {
			return exitOK
		}
		_, _ = fmt.Fprintln(diagnostics, "conformance: this costs money: confirm with --yes")
		return exitUsage
	}
	running, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(running, stop) // so that the second signal ends the process
	return f.run(running, newKit(running, t), suite, out, diagnostics)
}

// run checks the facts, deletes the run's streams and writes the results.
func (f flags) run(ctx context.Context, k *kit, suite []fact, out, diagnostics io.Writer) int {
	_, _ = fmt.Fprintf(diagnostics, "checking %d facts at %s in %s; names begin with %s\n",
		len(suite),
		k.endpoint, k.region, k.prefix)
	if _, err := k.send(ctx, jsonRequest(listStreams, object{})); err != nil {
		_, _ = fmt.Fprintf(diagnostics, "conformance: %s does not answer: %v\n", k.endpoint, err)
		return exitUnreachable
	}
	var reasons map[string]string
	if k.isRunnel(ctx) {
		reasons = known
	}
	results := k.run(ctx, suite, func(r result) { f.print(r.knownAs(reasons), out) })
	cleanup, done := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer done()
	left := k.deleteStreams(cleanup)
	if len(left) > 0 {
		_, _ = fmt.Fprintln(diagnostics, leftBehind(left, k.region))
	}
	judged := make([]result, len(results))
	for i, r := range results {
		judged[i] = r.knownAs(reasons)
	}
	s := summarize(judged)
	_, _ = fmt.Fprintln(diagnostics, s)
	if ctx.Err() != nil {
		return exitInterrupted
	}
	if f.report != "" {
		page := report(results, k.prefix, reasons)
		if err := os.WriteFile(f.report, []byte(page),
			0o644); err != nil { //nolint:gosec // a document
			_, _ = fmt.Fprintf(diagnostics, "conformance: --report: %v\n", err)
			return exitUnreachable
		}
	}
	return s.status()
}

// print writes a result as text, or as a line of JSON.
func (f flags) print(r result, out io.Writer) {
	if f.output == "json" {
		line, err := json.Marshal(r)
		if err == nil {
			_, _ = fmt.Fprintln(out, string(line))
		}
		return
	}
	_ = r.write(out)
}

// list writes the facts and their sources. It asks no endpoint.
func list(suite []fact, f flags, out io.Writer) int {
	for _, fact := range suite {
		if f.output == "json" {
			line, err := json.Marshal(map[string]string{
				"id": fact.id, "operation": fact.op, "behaviour": fact.says,
				"source": fact.source.kind.String(), "where": fact.source.where,
			})
			if err == nil {
				_, _ = fmt.Fprintln(out, string(line))
			}
			continue
		}
		_, _ = fmt.Fprintf(out, "%s\n  %s\n  %s\n", fact.id, fact.says, fact.source)
	}
	return exitOK
}

const usage = `Compare the behaviour of a Kinesis endpoint with %d facts. Each fact has its source.

  go run ./conformance --endpoint http://127.0.0.1:4567
  go run ./conformance --endpoint http://127.0.0.1:4567 --only '^put-record'
  go run ./conformance --endpoint aws --cost

runnel differs in a few facts by decision. For runnel these facts are listed as known, with the
reason, and do not fail; a listed fact that no longer differs is listed as stale.

Exit status: 0 all facts ok or known, 1 a fact differs or is in error, 2 wrong usage or every fact
skipped, 3 no answer.

%s`

func parse(args []string, diagnostics io.Writer) (flags, error) {
	var f flags
	set := pflag.NewFlagSet("conformance", pflag.ContinueOnError)
	set.SetOutput(diagnostics)
	set.StringVar(&f.endpoint, "endpoint", "", "the endpoint: a URL, or aws")
	set.StringVar(&f.region, "region", "", "the region (default: from the AWS configuration; "+
		"without one, us-east-1 for an emulator)")
	set.StringVar(&f.profile, "profile", "", "the profile of the AWS configuration files")
	set.StringVar(&f.only, "only", "", "check only the facts with an id that matches this regular "+
		"expression")
	set.StringVar(&f.skip, "skip", "", "leave out the facts with an id that matches this regular "+
		"expression")
	set.StringVar(&f.report, "report", "", "write the results to this file, as Markdown")
	set.StringVar(&f.output, "output", "text", "results as text, or as json with one result a line")
	set.BoolVar(&f.slow, "slow", false, "check also the facts that take minutes, such as the "+
		"expiry of iterators")
	set.BoolVar(&f.list, "list", false, "list the facts and their sources, without any call")
	set.BoolVar(&f.cost, "cost", false, "list the streams of a run against AWS and the units "+
		"that AWS bills, without any call")
	set.BoolVar(&f.yes, "yes", false, "run against AWS, which costs money")
	set.Usage = func() {
		_, _ = fmt.Fprintf(diagnostics, usage, len(facts()), set.FlagUsages())
	}
	if err := set.Parse(args); err != nil {
		return f, fmt.Errorf("%w", err)
	}
	switch {
	case set.NArg() > 0:
		return f, fmt.Errorf("unknown argument %s", set.Arg(0))
	case !slices.Contains([]string{"text", "json"}, f.output):
		return f, fmt.Errorf("--output %s: want text or json", f.output)
	case f.endpoint == "" && !f.list && !f.cost:
		return f, errors.New("--endpoint is missing: give a URL, or aws")
	}
	return f, nil
}
