package processes_test

import (
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
)

var metricsAt = regexp.MustCompile(`metrics: (http://\S+)`)

// page returns the page of metrics of a command that has named it on standard error; "" before.
func (p *process) page() string {
	found := metricsAt.FindStringSubmatch(p.stderr.String())
	if found == nil {
		return ""
	}
	response, err := http.Get(found[1])
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	return string(text)
}

// Workers of each command hold no more shards than --max-leases says. They report the others, and
// count them in their metrics.
func TestMaxLeases(t *testing.T) {
	t.Parallel()
	r := newKillRun(t, "", 1)
	r.serve("", "--stream", "orders:3")
	dir := t.TempDir()
	workers := map[string]*process{}
	for name, args := range map[string][]string{
		"tails":    {"tail"},
		"archives": {"archive", "--to", filepath.Join(dir, "archive"), "--metrics", "127.0.0.1:0"},
		"rollups": {
			"rollup", "--db", "sqlite:" + filepath.Join(dir, "rows.db"), "--table", "t", "--key", "/id",
			"--count", "--metrics", "127.0.0.1:0",
		},
	} {
		workers[name] = r.start(append(args, "--endpoint", r.endpoint, "--stream", "orders", "--app",
			name, "--failover", killFailover, "--max-leases", "1")...)
	}
	for name, p := range workers {
		clitest.Eventually(t, name+" reports two shards", func() bool {
			said := p.stderr.String()
			return strings.Contains(said, "shards are not read") && strings.Contains(said, "count=2")
		})
		if name != "tails" {
			clitest.Eventually(t, name+" counts two shards", func() bool {
				return strings.Contains(p.page(), "unclaimed_shards{stream=\"orders\"} 2")
			})
		}
		list := r.start("leases", "list", "--endpoint", r.endpoint, "--app", name, "--output", "json")
		list.want(0)
		if held := strings.Count(list.stdout.String(), `"language":"go"`); held != 1 {
			t.Errorf("%s: %d shards are held:\n%s", name, held, list.stdout.String())
		}
		p.stop()
	}
}

// With a short --checkpoint-every a checkpoint follows its records soon, however long --failover is.
func TestCheckpointEvery(t *testing.T) {
	r := newKillRun(t, "", 1)
	r.serve("", "--stream", "one:1")
	loss := &lossRun{killRun: r}
	worker := r.start("tail", "--endpoint", r.endpoint, "--stream", "one", "--from", "oldest", "--app",
		"tails", "--failover", "20m", "--checkpoint-every", "200ms")
	position := regexp.MustCompile(`"position":"\d[^"]*"`)
	last := ""
	for put := 1; put <= 2; put++ { // the first checkpoint waits for nothing
		loss.put(3)
		clitest.Eventually(t, "a checkpoint", func() bool {
			list := r.start("leases", "list", "--endpoint", r.endpoint, "--app", "tails", "--output",
				"json")
			<-list.done
			now := position.FindString(list.stdout.String())
			changed := now != "" && now != last &&
				strings.Count(worker.stdout.String(), "\n") == 3*put
			if changed {
				last = now
			}
			return changed
		})
	}
	worker.stop()
	for _, flags := range [][]string{
		{"--max-leases", "-1"}, {"--checkpoint-every", "-1s"}, {"--checkpoint-every", "6s"},
	} {
		status, _, said := clitest.Run(t.Context(), append([]string{
			"tail", "--local", "--stream", "one", "--app", "tails",
		}, flags...)...)
		if status != 2 || !strings.Contains(said, flags[0]+" is "+flags[1]) {
			t.Errorf("%q: status %d, %s", flags, status, said)
		}
		status, _, said = clitest.Run(t.Context(), append([]string{
			"tail", "--local", "--stream", "one",
		}, flags...)...)
		if status != 2 || !strings.Contains(said, flags[0]+" is only for a worker of a fleet") {
			t.Errorf("%q: status %d, %s", flags, status, said)
		}
	}
}
