package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/runnel-stream/runnel/bench/internal/process"
)

// These are the names of the servers.
const (
	runnelDurable   = "runnel, every answer synced"
	runnelMemory    = "runnel --memory"
	ferroMemory     = "ferrokinesis 0.7.0"
	ferroDurable    = "ferrokinesis --state-dir"
	kinesaliteName  = "kinesalite 3.3.3"
	kinesisMockName = "kinesis-mock 0.6.2"
	dynaliteName    = "dynalite 4.0.0"
	dynamoLocalName = "DynamoDB Local 3.1.0"
	bareName        = "nothing but a synced answer"
)

// server describes a server to measure.
type server struct {
	name   string
	groups []group
	// command starts it on a free port of this machine, with an empty folder for its data.
	command func(ctx context.Context, port int, dir string) *exec.Cmd
	needs   []string // files of its installation
	install string   // the command that installs it
	target  string   // the operation of the first call; it shows that the server answers
	slow    bool     // measured in the first round only, by one client, without warming up
	bare    bool     // an upper limit and not a peer: it keeps no data
}

// servers returns the servers that match cfg.Only, in the tables' order.
func servers(cfg Config) []*server {
	all := runnel(cfg.Runnel, "")
	if cfg.Before != "" {
		all = append(all, runnel(cfg.Before, ", before")...)
	}
	all = append(all, ferrokinesis(cfg)...)
	all = append(all, nodeServers(cfg)...)
	all = append(all, dynamoLocal(cfg), bareServer())
	var chosen []*server
	for _, s := range all {
		if s.target == "" {
			s.target = "Kinesis_20131202.ListStreams"
		}
		if cfg.Only.MatchString(s.name) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// runnel returns the servers of one binary of runnel. The suffix ends their names.
func runnel(binary, suffix string) []*server {
	own := func(ctx context.Context, port int, args ...string) *exec.Cmd {
		args = append([]string{"serve", "--addr", process.Address(port), "--quiet"}, args...)
		return exec.CommandContext(ctx, binary, args...)
	}
	return []*server{
		{
			name: runnelDurable + suffix, groups: append(kinesisGroups(), groupUpdates),
			command: func(ctx context.Context, port int, dir string) *exec.Cmd {
				return own(ctx, port, "--data", dir)
			},
		},
		{
			name: runnelMemory + suffix, groups: append(kinesisGroups(), groupUpdates),
			command: func(ctx context.Context, port int, _ string) *exec.Cmd {
				return own(ctx, port, "--memory")
			},
		},
	}
}

func ferrokinesis(cfg Config) []*server {
	binary := filepath.Join(cfg.Tools, "peers", "bin", "ferrokinesis")
	start := func(ctx context.Context, port int, args ...string) *exec.Cmd {
		args = append([]string{
			"--port", fmt.Sprint(port), "--create-stream-ms", "20",
			"--delete-stream-ms", "20", "--shard-limit", "1000",
		}, args...)
		return exec.CommandContext(ctx, binary, args...)
	}
	return []*server{
		{
			name: ferroMemory, groups: kinesisGroups(), needs: []string{binary},
			install: "make peers",
			command: func(ctx context.Context, port int, _ string) *exec.Cmd {
				return start(ctx, port)
			},
		},
		{
			name: ferroDurable, groups: kinesisGroups(), needs: []string{binary},
			install: "make peers",
			command: func(ctx context.Context, port int, dir string) *exec.Cmd {
				return start(ctx, port, "--state-dir", dir)
			},
		},
	}
}

// nodeServers are the three servers on Node.js. loopback.cjs keeps them from listening on other
// addresses than this machine's.
func nodeServers(cfg Config) []*server {
	root := filepath.Join(cfg.Tools, "peers", "javascript")
	modules, err := filepath.Abs(filepath.Join(root, "node_modules"))
	if err != nil {
		modules = filepath.Join(root, "node_modules")
	}
	loopback := filepath.Join(filepath.Dir(modules), "loopback.cjs")
	kinesalite := filepath.Join(modules, "kinesalite", "cli.js")
	mock := filepath.Join(modules, "kinesis-local", "main.js")
	dynalite := filepath.Join(modules, "dynalite", "cli.js")
	return []*server{
		{
			name: kinesaliteName, groups: kinesisGroups(), needs: []string{kinesalite},
			install: "make peers",
			command: func(ctx context.Context, port int, _ string) *exec.Cmd {
				return exec.CommandContext(ctx, "node", "-r", loopback, kinesalite,
					"--port", fmt.Sprint(port), "--createStreamMs", "20",
					"--shardLimit", "1000")
			},
		},
		{
			// A call of 500 records takes seconds when eight are in flight.
			name: kinesisMockName, groups: kinesisGroups(), needs: []string{mock}, slow: true,
			install: "make peers",
			command: func(ctx context.Context, port int, _ string) *exec.Cmd {
				c := exec.CommandContext(ctx, "node", "-r", loopback, "main.js")
				c.Dir = filepath.Dir(mock) // it finds its server.json there
				c.Env = append(os.Environ(), "LOG_LEVEL=ERROR", "SHARD_LIMIT=1000",
					"CREATE_STREAM_DURATION=20ms", "KINESIS_MOCK_TLS_PORT=0",
					fmt.Sprintf("KINESIS_MOCK_PLAIN_PORT=%d", port))
				return c
			},
		},
		{
			name: dynaliteName, groups: []group{groupUpdates}, needs: []string{dynalite},
			install: "make peers", target: listTables,
			command: func(ctx context.Context, port int, _ string) *exec.Cmd {
				return exec.CommandContext(ctx, "node", dynalite, "--host", "127.0.0.1",
					"--port", fmt.Sprint(port), "--createTableMs", "20")
			},
		},
	}
}

const listTables = "DynamoDB_20120810.ListTables"

// dynamoLocal is Amazon's DynamoDB Local, in memory.
func dynamoLocal(cfg Config) *server {
	root := filepath.Join(cfg.Tools, "interop", "dynamodblocal")
	lib, native := filepath.Join(root, "lib"), filepath.Join(root, "native")
	return &server{
		name: dynamoLocalName, groups: []group{groupUpdates}, needs: []string{lib, native},
		install: "interop/install", target: listTables,
		command: func(ctx context.Context, port int, _ string) *exec.Cmd {
			return exec.CommandContext(ctx, "java", "-Xmx512m",
				"-Djava.library.path="+native, "-cp", filepath.Join(lib, "*"),
				"software.amazon.dynamodb.services.local.main.ServerRunner",
				"-inMemory", "-disableTelemetry", "-port", fmt.Sprint(port))
		},
	}
}

// installed returns an error if a file of the server's installation is missing.
func (s *server) installed() error {
	for _, name := range s.needs {
		if _, err := os.Stat(name); err != nil {
			return fmt.Errorf("not installed: %w (%s installs it)", err, s.install)
		}
	}
	return nil
}
