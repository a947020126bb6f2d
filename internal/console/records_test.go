package console_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/runnel-stream/runnel/internal/console"
)

// records parses standard error: each line must be a record of the log.
func records(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%q is no record: %v", line, err)
		}
		if record["time"] == nil || record["level"] == nil || record["msg"] == nil {
			t.Errorf("the record lacks a member: %s", line)
		}
		all = append(all, record)
	}
	return all
}

// Whatever is printed becomes records, and records stay as they are.
func TestLogAsJSON(t *testing.T) {
	const child = `{"time":"then","level":"WARN","msg":"of a child"}`
	var text bytes.Buffer
	con := &console.Console{Streams: console.Streams{Err: &text}, LogFormat: "json"}
	con.LogAsJSON()
	con.Say("progress of %d%%\n\n  two \"lines\"", 50)
	_, _ = io.WriteString(con.Err, "in ")
	_, _ = io.WriteString(con.Err, "parts\n"+child+"\n{no record}\n")
	con.Logger().Warn("a warning", "of", "a logger")
	con.Logger().Info("hidden")
	con.NewProgress().Say("above")
	_, _ = io.WriteString(con.Err, "without an end")
	con.Fail("it failed:\nfor a reason", "runnel --help", 2)
	con.Flush() // writes nothing
	var got []string
	for _, r := range records(t, text.String()) {
		got = append(got, fmt.Sprintf("%v: %v%v%v%v", r["level"], r["msg"], r["of"], r["status"],
			r["try"]))
	}
	want := []string{
		"INFO: progress of 50%", `INFO:   two "lines"`, "INFO: in parts", "WARN: of a child",
		"INFO: {no record}", "WARN: a warninga logger", "INFO: above", "INFO: without an end",
		"ERROR: it failed:\nfor a reason2runnel --help",
	}
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		if plain := strings.ReplaceAll(got[i], "<nil>", ""); plain != want[i] {
			t.Errorf("%q, want %q", plain, want[i])
		}
	}
	if !strings.Contains(text.String(), child+"\n") {
		t.Errorf("a child's record was changed: %s", text.String())
	}
}

// Records and lines of several goroutines do not mix.
func TestRecordsAreWhole(t *testing.T) {
	var text bytes.Buffer
	con := &console.Console{Streams: console.Streams{Err: &text}, Verbose: true}
	con.LogAsJSON()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				con.Say("a line that is printed")
				con.Logger().Debug("a record of a logger")
				_, _ = fmt.Fprintln(con.Err, `{"time":"t","level":"INFO","msg":"of a child"}`)
			}
		})
	}
	all.Wait()
	if got := len(records(t, text.String())); got != 2400 {
		t.Errorf("%d records, want 2400", got)
	}
}

// A line without an end does not grow without bound.
func TestLongLine(t *testing.T) {
	var text bytes.Buffer
	con := &console.Console{Streams: console.Streams{Err: &text}}
	con.LogAsJSON()
	for range 1000 {
		_, _ = io.WriteString(con.Err, strings.Repeat("x", 1000))
	}
	if len(text.String()) < 900_000 {
		t.Errorf("%d of 1,000,000 bytes were written", text.Len())
	}
	_ = records(t, text.String())
}

// In text, nothing changes.
func TestText(t *testing.T) {
	var text bytes.Buffer
	con := &console.Console{Streams: console.Streams{Err: &text}, LogFormat: "text"}
	con.Say("a line")
	con.LoggerFrom(slog.LevelInfo).Info("hello")
	con.Flush()
	con.Fail("it failed", "runnel --help", 2)
	want := "runnel: it failed\nTry: runnel --help\n"
	if !strings.HasPrefix(text.String(), "a line\n") || !strings.HasSuffix(text.String(), want) ||
		!strings.Contains(text.String(), "level=INFO msg=hello") {
		t.Errorf("%q", text.String())
	}
}
