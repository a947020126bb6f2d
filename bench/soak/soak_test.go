package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestRead(t *testing.T) {
	const log = `{"Action":"start","Package":"p"}
{"Action":"output","Test":"TestA","Output":"    a_test.go:1: soak: 300 seeds, 12000 crashes\n"}
{"Action":"output","Test":"TestA/x=1","Output":"    a_test.go:1: soak: 5 seeds; {Crashes:7} 9 lives\n"}
{"Action":"pass","Test":"TestA/x=1","Elapsed":1}
{"Action":"pass","Test":"TestA","Elapsed":2.5}
{"Action":"output","Test":"TestPlain","Output":"    a_test.go:1: a soak of 300 seeds\n"}
{"Action":"pass","Test":"TestPlain","Elapsed":2.5}
{"Action":"output","Test":"TestB","Output":"    b_test.go:1: [rapid] OK, passed 100 tests (3ms)\n"}
{"Action":"output","Test":"TestB","Output":"    b_test.go:1: [rapid] OK, passed 50 tests (3ms)\n"}
{"Action":"pass","Test":"TestB","Elapsed":0.5}
{"Action":"output","Test":"TestC","Output":"    c_test.go:1: seed 7: it is lost\n"}
{"Action":"fail","Test":"TestC","Elapsed":0}
{"Action":"output","Output":"FAIL\n"}
{"Action":"fail","Elapsed":3}
`
	var failures strings.Builder
	rows, err := read(iotest.OneByteReader(strings.NewReader(log)), "p", &failures)
	want := []row{
		{pkg: "p", test: "TestA", seeds: 305, crashes: 12000, took: 2500 * time.Millisecond},
		{pkg: "p", test: "TestB", seeds: 150, took: 500 * time.Millisecond},
		{pkg: "p", test: "TestC", failed: true},
	}
	if err != nil || !reflect.DeepEqual(rows, want) {
		t.Errorf("%v, %v; want %v", rows, err, want)
	}
	if !strings.Contains(failures.String(), "seed 7: it is lost") {
		t.Errorf("the failure's output is %q", failures.String())
	}
}

// A failure outside the tests has a row too: a build, a panic, a leak that TestMain finds.
func TestReadFailedPackage(t *testing.T) {
	for name, log := range map[string]string{
		"build": "{\"Action\":\"build-output\",\"Output\":\"undefined: x\"}\n" +
			"{\"Action\":\"build-fail\"}\n{\"Action\":\"fail\",\"Elapsed\":0}\n",
		"after the tests": "{\"Action\":\"pass\",\"Test\":\"TestA\"}\n" +
			"{\"Action\":\"output\",\"Output\":\"undefined: x\"}\n{\"Action\":\"fail\"}\n",
		"no JSON": "undefined: x\n{\"Action\":\"fail\"}\n",
	} {
		var failures strings.Builder
		rows, err := read(strings.NewReader(log), "p", &failures)
		if err != nil || !reflect.DeepEqual(rows, []row{{pkg: "p", failed: true}}) {
			t.Errorf("%s: %v, %v", name, rows, err)
		}
		if !strings.Contains(failures.String(), "undefined: x") {
			t.Errorf("%s: the failure's output is %q", name, failures.String())
		}
	}
	broken := iotest.ErrReader(errors.New("cut"))
	if _, err := read(broken, "p", &strings.Builder{}); err == nil {
		t.Error("events that are cut off are no error")
	}
}

func TestTable(t *testing.T) {
	got := table([]row{
		{pkg: "p", test: "TestA", seeds: 1_234_567, crashes: 12, took: 90 * time.Second},
		{pkg: "p", test: "TestB", operations: 1000, took: time.Second, failed: true},
	}, "abc1234", 100, 40*time.Minute)
	for _, want := range []string{
		"commit abc1234, with RUNNEL_SOAK=100", "40m0s on",
		"| p | TestA | 1,234,567 | 12 |  | 90 s | ok |",
		"| p | TestB |  |  | 1,000 | 1 s | FAIL |",
		"| all | | 1,234,567 | 12 | 1,000 | 2400 s | FAIL |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
}

// TestSuites requires that every package that reads RUNNEL_SOAK is one of the suites.
func TestSuites(t *testing.T) {
	outside := []string{"bench/soak", "interop"} // interop needs Java and runs by its own target
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" ||
			len(entry.Name()) > 2 && entry.Name()[0] == '.'):
			return filepath.SkipDir
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := os.ReadFile(name)
		pkg, _ := filepath.Rel("../..", filepath.Dir(name))
		pkg = filepath.ToSlash(pkg)
		if strings.Contains(string(text), `Getenv("RUNNEL_SOAK")`) &&
			!slices.Contains(outside, pkg) &&
			!slices.ContainsFunc(suites, func(s suite) bool { return s.pkg == pkg }) {
			t.Errorf("%s has random tests, and is no suite of main.go", pkg)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		if found, _ := filepath.Glob("../../" + s.pkg + "/*_test.go"); len(found) == 0 {
			t.Errorf("the suite %s is not there", s.pkg)
		}
	}
}
