package cli

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/server"
)

// maxSyncInterval bounds --sync: a power cut may lose the records of one interval.
const maxSyncInterval = time.Minute

// config reads the flags, but for TLS.
func (f *serveFlags) config(c *cobra.Command) (server.Config, error) {
	cfg := server.Config{
		Memory: f.memory.on, Dir: f.data, Limits: f.limits, Faults: f.chaos,
		AllowOrigins: f.allowOrigins, SkipDamaged: f.skipDamaged,
	}
	err := notEmpty(c, "data", "stream", "region", "allow-origin", "items-memory", "tls-cert",
		"tls-key")
	if err != nil {
		return cfg, err
	}
	if f.memory.on && f.data != "" {
		return cfg, exit.Usage("--memory and --data exclude each other")
	}
	if f.memory.on {
		cfg.MemoryLimit = f.memory.limit()
	}
	if !f.memory.on && f.data == "" {
		cfg.Dir = defaultData
	}
	if err := f.authorize(c, &cfg); err != nil {
		return cfg, err
	}
	if interval, ok := strings.CutPrefix(f.sync, "interval="); ok {
		cfg.SyncInterval, err = time.ParseDuration(interval)
		if err != nil || cfg.SyncInterval <= 0 || cfg.SyncInterval > maxSyncInterval {
			return cfg, exit.Usage("--sync %s: want always, or interval= and a duration "+
				"above 0, at most 1m", f.sync)
		}
	} else if f.sync != "always" {
		return cfg, exit.Usage("--sync %s: want always or interval=DURATION", f.sync)
	}
	if len(f.account) != 12 || strings.Trim(f.account, "0123456789") != "" {
		return cfg, exit.Usage("--account %s: want 12 digits", f.account)
	}
	cfg.Account, cfg.Region = f.account, f.region
	if cfg.Streams, err = parseStreams(f.streams); err != nil {
		return cfg, err
	}
	if f.streamDelay < 0 {
		return cfg, exit.Usage("--stream-delay %v: want 0 or more", f.streamDelay)
	}
	if f.itemsMemory != "" {
		if cfg.ItemsMemory, err = usage.ParseSize(f.itemsMemory); err != nil {
			return cfg, exit.Usage("--items-memory: %w", err)
		}
	}
	cfg.AcceptClock = f.acceptClock
	if cfg.StreamDelay = f.streamDelay; cfg.StreamDelay == 0 {
		cfg.StreamDelay = -1 // which is no time; 0 is the default
	}
	return cfg, f.check(cfg)
}

// parseStreams reads the texts of --stream. The server checks names and numbers.
func parseStreams(texts []string) (streams []server.StreamSpec, err error) {
	for _, text := range texts {
		name, shards, ok := strings.Cut(text, ":")
		count, err := strconv.Atoi(shards)
		if !ok || name == "" || err != nil || count < 1 {
			return nil, exit.Usage("--stream %s: want NAME:SHARDS, as orders:4", text)
		}
		streams = append(streams, server.StreamSpec{Name: name, Shards: count})
	}
	return streams, nil
}

// check returns the faults of a configuration under the names of their flags.
func (f *serveFlags) check(cfg server.Config) error {
	var fault *server.FieldError
	err := cfg.Validate()
	if !errors.As(err, &fault) {
		return err
	}
	flags := map[string]string{
		"Limits": "--limits", "Faults": "--chaos", "Credentials": "--auth " + f.auth,
		"AllowOrigins": "--allow-origin",
		"MemoryLimit":  "--memory=" + f.memory.String(),
		"ItemsMemory":  "--items-memory " + f.itemsMemory,
		"Streams":      "--stream: " + fault.Value,
		"Region":       "--region: " + fault.Value,
	}
	if flag := flags[fault.Field]; flag != "" {
		return exit.Usage("%s: %w", flag, fault.Err)
	}
	return exit.Usage("%w", err)
}

// authorize reads --auth. Without the flag the server may listen only on a loopback address.
func (f *serveFlags) authorize(c *cobra.Command, cfg *server.Config) error {
	host, err := checkAddr(c.Context(), "--addr", f.addr)
	if err != nil {
		return err
	}
	if file, ok := strings.CutPrefix(f.auth, "sigv4="); ok {
		if file == "" {
			return exit.Usage("--auth sigv4=: the name of the file is missing: want sigv4=FILE")
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return exit.Usage("--auth %s: %w", f.auth, err)
		}
		cfg.Credentials = server.Credentials(text)
		if len(text) == 0 {
			return exit.Usage("--auth %s: the file is empty", f.auth)
		}
		return nil
	}
	if f.auth != "none" {
		return exit.Usage("--auth %s: want none or sigv4=FILE", f.auth)
	}
	if !server.IsLoopback(host) && !c.Flags().Changed("auth") {
		return exit.Usage("--addr %s can be reached from other machines, and no signature is "+
			"checked: say --auth sigv4=FILE, or --auth none explicitly, or listen on "+
			"127.0.0.1", f.addr)
	}
	return nil
}
