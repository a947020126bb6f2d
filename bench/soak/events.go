package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// row is one line of the table: a test, or a package that failed.
type row struct {
	pkg, test                  string
	seeds, crashes, operations int
	took                       time.Duration
	failed                     bool
}

// String is a line of progress.
func (r row) String() string {
	return fmt.Sprintf("%-5s %s %s: %d seeds, %d crashes, %d operations, %v", r.result(), r.pkg,
		r.test, r.seeds, r.crashes, r.operations, r.took.Round(100*time.Millisecond))
}

func (r row) result() string {
	if r.failed {
		return "FAIL"
	}
	return "ok"
}

// event is a line of `go test -json`.
type event struct {
	Action, Test, Output string
	Elapsed              float64 // seconds
}

var (
	size  = regexp.MustCompile(`\bsoak: (.*)`)
	count = regexp.MustCompile(`(\d+) (seeds|crashes|operations)\b`)
	rapid = regexp.MustCompile(`\[rapid\] OK, passed (\d+) tests`)
)

// addSize adds the size that a line of a test's log has. It reports whether the line has one.
func (r *row) addSize(line string) bool {
	if found := rapid.FindStringSubmatch(line); found != nil {
		n, _ := strconv.Atoi(found[1])
		r.seeds += n
		return true
	}
	found := size.FindStringSubmatch(line)
	if found == nil {
		return false
	}
	for _, each := range count.FindAllStringSubmatch(found[1], -1) {
		n, _ := strconv.Atoi(each[1])
		switch each[2] {
		case "seeds":
			r.seeds += n
		case "crashes":
			r.crashes += n
		case "operations":
			r.operations += n
		}
	}
	return true
}

// read reads the events of a package's tests. It returns a row for each test that has logged its
// size, and for each failed test; a row without a test's name is a failure of the package, such as
// a failed build. It copies the output of failed tests to failures. A subtest belongs to its test.
func read(events io.Reader, pkg string, failures io.Writer) ([]row, error) {
	r := reading{
		tests: map[string]*row{}, random: map[string]bool{}, printed: map[string][]string{},
	}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil { // the build's own words
				e = event{Action: "output", Output: string(line)}
			}
			r.take(e, pkg, failures)
		}
		switch {
		case err == io.EOF:
			return r.rows, nil
		case err != nil:
			return nil, fmt.Errorf("read the test's events: %w", err)
		}
	}
}

// reading has the state of a package's running tests, by name; "" is the package itself.
type reading struct {
	rows    []row
	tests   map[string]*row
	random  map[string]bool
	printed map[string][]string // the last lines, at most keptLines
}

const keptLines = 400

func (r *reading) take(e event, pkg string, failures io.Writer) {
	test, _, sub := strings.Cut(e.Test, "/")
	now := r.tests[test]
	if now == nil {
		now = &row{pkg: pkg, test: test}
		r.tests[test] = now
	}
	switch e.Action {
	case "output", "build-output":
		if now.addSize(e.Output) {
			r.random[test] = true
		}
		if r.printed[test] = append(r.printed[test], e.Output); len(r.printed[test]) > keptLines {
			r.printed[test] = r.printed[test][1:]
		}
	case "pass", "fail", "build-fail":
		if sub {
			return
		}
		now.failed = e.Action != "pass"
		now.took = time.Duration(e.Elapsed * float64(time.Second))
		if now.failed {
			_, _ = io.WriteString(failures, strings.Join(r.printed[test], ""))
		}
		if now.failed && test == "" && r.explained() {
			return
		}
		if now.failed || r.random[test] {
			r.rows = append(r.rows, *now)
		}
		delete(r.tests, test)
		delete(r.printed, test)
	}
}

// explained reports whether a test has failed, so that the package's failure needs no row.
func (r *reading) explained() bool {
	for _, each := range r.rows {
		if each.failed {
			return true
		}
	}
	return false
}
