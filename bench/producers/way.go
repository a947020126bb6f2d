package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/runnel-stream/runnel/bench/internal/process"
)

// These are the names of the ways of putting.
const (
	waySeed    = "one record a key and call"
	wayChained = "chained"
	wayPlain   = "plain"
	wayKey     = "key (default)"
	wayShard   = "shard"
	wayNone    = "none"
	wayKPL     = "KPL 1.1.1"
)

// way is a way of putting.
type way struct {
	name    string
	ordered string // the guarantee, for the column "keeps"
	own     bool   // an order of runnel's producer
	command func(ctx context.Context, t task) *exec.Cmd
}

// task is the work of a client.
type task struct {
	server *process.Server
	file   string
	passes int
	most   time.Duration
	limits string
}

// ways returns the ways that match cfg.Only, in the tables' order.
func ways(cfg Config) []way {
	orders := []way{
		{name: waySeed, ordered: "a key's order"},
		{name: wayChained, ordered: "a key's order", own: true},
		{name: wayPlain, ordered: "a key's order", own: true},
		{name: wayKey, ordered: "a key's order, exactly once", own: true},
		{name: wayShard, ordered: "a key's order, exactly once", own: true},
		{name: wayNone, ordered: "nothing; exactly once", own: true},
		{name: wayKPL, ordered: "nothing", command: kpl(cfg)},
	}
	var chosen []way
	for _, w := range orders {
		if !cfg.Only.MatchString(w.name) {
			continue
		}
		if w.command == nil {
			w.command = itself(w.name)
		}
		chosen = append(chosen, w)
	}
	return chosen
}

// itself returns the command that runs this program as a client.
func itself(name string) func(ctx context.Context, t task) *exec.Cmd {
	return func(ctx context.Context, t task) *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			self = os.Args[0]
		}
		return exec.CommandContext(ctx, self, asClient, name, "https://"+t.server.Address,
			t.server.CA(), t.file, strconv.Itoa(t.passes), t.most.String())
	}
}

// kpl returns the command that runs the KPL: a JVM with its native process.
func kpl(cfg Config) func(ctx context.Context, t task) *exec.Cmd {
	return func(ctx context.Context, t task) *exec.Cmd {
		libraries := filepath.Join(cfg.Tools, "interop", "kpl", "lib", "*")
		return exec.CommandContext(ctx, "java", "-Xmx512m",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", libraries,
			filepath.Join("bench", "producers", "Put.java"), t.server.Address, t.server.CA(),
			t.server.Dir, t.file, strconv.Itoa(t.passes),
			fmt.Sprint(t.most.Milliseconds()), t.limits)
	}
}
