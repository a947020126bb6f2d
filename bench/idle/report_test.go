package main

import (
	"strings"
	"testing"
	"time"
)

// TestReport checks that the table has medians, in the columns of its head.
func TestReport(t *testing.T) {
	s := &server{
		name: "a server", started: []float64{9, 1, 3, 5}, cpu: []float64{2, 2, 2, 2},
		memory: []memory{{10, 7, 3}, {20, 16, 4}, {30, 25, 5}},
	}
	got := report(Config{Rounds: 4, Idle: time.Second}, []*server{s})
	want := "| a server | 4.0 (1.0 to 9.0) | 2.0 | 20.0 | 16.0 | 4.0 |\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("the table is\n%s, want its last line as\n%s", got, want)
	}
}
